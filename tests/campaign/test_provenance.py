"""What a manifest says of where a campaign ran, and what it keeps to itself."""

import pytest

from campaign.provenance import variables, without_accounts


def test_variables_are_recorded_by_name_and_only_those_that_measure_by_value() -> None:
    given = {
        "OMPI_MCA_btl": "tcp,self", "UCX_TLS": "rc", "OMP_NUM_THREADS": "1", "LD_PRELOAD": "/x.so",
        "FI_PROVIDER": "tcp", "I_MPI_FABRICS": "shm", "APPTAINERENV_OMPI_MCA_pml": "ob1",
        "GLIBC_TUNABLES": "x=1", "AWS_SECRET_ACCESS_KEY": "s3", "GITHUB_TOKEN": "t",
        "HOME": "/home/alice", "SLURM_JOB_ACCOUNT": "proj42", "OLD_LD_PATH": "no", "FIRST": "x",
    }  # fmt: skip
    found = variables({"variables": ["UCX_TLS"]}, given)["environment"]
    assert list(found) == sorted(given)
    assert {name for name, value in found.items() if value is None} == {
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HOME", "SLURM_JOB_ACCOUNT", "OLD_LD_PATH",
        "FIRST",
    }  # fmt: skip
    assert found["OMPI_MCA_btl"] == "tcp,self" and found["APPTAINERENV_OMPI_MCA_pml"] == "ob1"


@pytest.mark.parametrize(
    ("option", "kept"),
    [
        ("--account=proj42", "--account=…"), ("-A proj42", "-A …"), ("-Aproj42", "-A…"),
        ("--mail-user alice@x.org", "--mail-user …"), ("--partition=big", "--partition=big"),
        ("--qos=high", "--qos=high"),
    ],
)  # fmt: skip
def test_who_pays_is_not_recorded(option: str, kept: str) -> None:
    assert without_accounts({"access": [option], "launch": "srun"}) == {
        "access": [kept], "launch": "srun",
    }  # fmt: skip
    assert without_accounts({"launch": "srun"}) == {"launch": "srun"}
