# Every command that a person types. `make help` lists them.
SHELL := /bin/sh
SITE ?= local
# quick, paper (the reports' parameters) or site (as large as the site's memory allows).
TIER ?= quick
ROUNDS ?= 3
IMAGES ?=
CHECKS ?=
TESTS ?=
RESUME ?=
PAPER ?=
STUDY ?=
ESTIMATE ?=
HOST_MPI ?=
CAMPAIGNS ?=
BUNDLE ?=
OUT ?=
WITH_IMAGES ?=
CREATOR ?=
KEEP_IMAGES ?=
AGAIN ?=
MOST_BYTES ?=
PREFIX ?=
NAME ?=
SCHEDULER ?=
EMAIL ?=
REGISTRY ?=
LOCK ?=
KEY ?=
DRY_RUN ?=
BUILDER ?=
IMPLEMENTATIONS ?=
KEEP_NIGHTS ?=
NODES ?=
TRIALS ?=
LINK ?=
PYTHON := .wyeast/venv/bin/python
CLUSTER := $(PYTHON) -m site_configs.virtual
# Jobs for the cluster in a box are submitted by its user, from its controller's host.
SUBMIT := $(if $(filter virtual,$(SITE)),$(CLUSTER) exec --)
# What `python3 -m venv` needs on a bare Debian machine.
PYTHON_PACKAGES := python3 python3-venv

export WYEAST_ROOT := $(CURDIR)
export PYTHONPATH := $(CURDIR)


.PHONY: help setup apptainer images image push pull new-key sign verify bill reproducibility \
    spack spack-lock spack-mirror new-site check-site run nightly study performance report bundle rerun \
    cluster-up cluster-status cluster-down \
    cluster-shell cluster-performance test test-images unit lint \
    test-packages lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | \
	    awk -F '\t' '{ printf "  make %-20s %s\n", $$1, $$2 }'
	@echo "  PAPER of make study:     $(notdir $(patsubst %/study.yaml,%,$(wildcard literature/*/study.yaml)))"

setup: .wyeast/venv/.for-run apptainer ## install Python packages and Apptainer for the project

apptainer: .wyeast/venv/.for-run
	@$(PYTHON) -m containers.apptainer --quiet

images: setup ## build the images that are out of date (IMAGES=a,b; all; those of SITE; BUILDER=spack)
ifeq ($(BUILDER),)
	@images=$(or $(IMAGES),$(IMPLEMENTATIONS),$$($(PYTHON) -m campaign.choice --site $(SITE))) && \
	    $(PYTHON) -m containers.build --images "$$images"
else
	@$(PYTHON) -m containers.build --builder $(BUILDER) \
	    --images $(or $(IMPLEMENTATIONS),$(IMAGES),default)
endif

spack: .wyeast/venv/.for-run ## find Spack (SPACK_ROOT, PATH) or clone its pinned release
	@$(PYTHON) -m containers.spack

spack-lock: .wyeast/venv/.for-run ## renew the locks of spack.yaml and say what changed (IMPLEMENTATIONS=a,b)
	@$(PYTHON) -m containers.spack_lock $(if $(IMPLEMENTATIONS),--implementations $(IMPLEMENTATIONS))

spack-mirror: .wyeast/venv/.for-run ## fill a mirror of sources to carry to a site without internet
	@$(PYTHON) -m containers.spack_mirror $(if $(IMPLEMENTATIONS),--implementations $(IMPLEMENTATIONS))

image: setup ## pack an MPI that is installed here into an image (PREFIX=/opt/some-mpi NAME=some-mpi-1.2)
	@$(PYTHON) -m containers.build --prefix '$(PREFIX)' --name '$(NAME)'

new-site: .wyeast/venv/.for-run ## write a site folder of what this machine says (NAME, SCHEDULER=slurm|pbs|lsf|local, DRY_RUN=1)
	@. ./activate && $(PYTHON) -m site_configs.new_site '$(NAME)' \
	    $(if $(SCHEDULER),--scheduler '$(SCHEDULER)') $(if $(DRY_RUN),--dry-run)

# What needs no job is looked at before images are built, which takes minutes.
CHECK_SITE = $(SUBMIT) $(PYTHON) -m campaign.check_site --site $(SITE) $(if $(IMAGES),--images $(IMAGES))
check-site: setup ## prove a site by the preflight of each of its images, and say what to fix (SITE, IMAGES)
	@. ./activate && $(CHECK_SITE) --look && $(MAKE) --no-print-directory images && $(CHECK_SITE)

push: setup ## push images to a registry (REGISTRY=oras://host/path, IMAGES=a,b, DRY_RUN=1)
	@$(PYTHON) -m containers.registry push --registry '$(REGISTRY)' --images '$(IMAGES)' $(if $(DRY_RUN),--dry-run)

pull: setup ## pull images by digest (REGISTRY=oras://host/path, IMAGES=a,b, LOCK=<file>|registry, DRY_RUN=1)
	@$(PYTHON) -m containers.registry pull --registry '$(REGISTRY)' --images '$(IMAGES)' \
	    --lock '$(LOCK)' $(if $(DRY_RUN),--dry-run)

new-key: setup ## make a key to sign images with (NAME="First Last" EMAIL=name@host)
	@$(PYTHON) -m containers.trust new-key --name '$(NAME)' --email '$(EMAIL)'

sign: setup ## sign images and renew their digests (IMAGES=a,b, KEY=<fingerprint>, DRY_RUN=1)
	@$(PYTHON) -m containers.trust sign --images '$(IMAGES)' --key '$(KEY)' $(if $(DRY_RUN),--dry-run)

verify: setup ## verify digests and signatures by the keys in containers/trust (IMAGES=a,b, KEY=<fingerprint>)
	@$(PYTHON) -m containers.trust verify --images '$(IMAGES)' --key '$(KEY)'

bill: setup ## write the bill of materials beside each image, in CycloneDX (IMAGES=a,b)
	@$(PYTHON) -m containers.bill_of_materials --images '$(IMAGES)'

reproducibility: setup ## build images again and say whether they are the same (IMAGES=a,b)
	@$(PYTHON) -m containers.reproducibility --images '$(IMAGES)'

run: images ## measure a campaign and report it (SITE, TIER, ROUNDS, IMAGES, CHECKS, HOST_MPI, RAW_BY_RANK, RESUME, ESTIMATE)
	@. ./activate && $(SUBMIT) $(PYTHON) -m campaign --site $(SITE) --tier $(TIER) --rounds $(ROUNDS) \
	    $(if $(IMAGES),--images $(IMAGES)) $(if $(CHECKS),--checks '$(CHECKS)') \
	    $(if $(RESUME),--resume $(RESUME)) $(if $(ESTIMATE),--estimate) \
	    $(if $(HOST_MPI),--host-mpi '$(HOST_MPI)') $(if $(RAW_BY_RANK),--raw-by-rank) \
	    $(if $(STUDY),--study '$(STUDY)')

# Of nothing else: a night updates nothing. A job of the cluster's is inside it already.
nightly: ## measure a night, measure again what is worse, decide (as run; KEEP_NIGHTS, RESUME, DRY_RUN)
	@[ -x $(PYTHON) ] || { echo "nightly: nothing is installed; first: make images SITE=$(SITE)" >&2; exit 1; }
	@. ./activate && $(if $(SLURM_JOB_ID),,$(SUBMIT)) $(PYTHON) -m campaign.nightly --site $(SITE) \
	    --tier $(TIER) --rounds $(ROUNDS) $(if $(IMAGES),--images $(IMAGES)) \
	    $(if $(CHECKS),--checks '$(CHECKS)') $(if $(NAME),--name '$(NAME)') \
	    $(if $(RESUME),--resume $(RESUME)) $(if $(KEEP_NIGHTS),--keep-nights $(KEEP_NIGHTS)) \
	    $(if $(DRY_RUN),--dry-run)

study: .wyeast/venv/.for-run ## repeat a report and test its claims (PAPER=<name>, SITE, TIER, ROUNDS, IMAGES)
	@images=$$($(PYTHON) -m campaign.choice --study '$(PAPER)') && \
	    $(MAKE) --no-print-directory run STUDY='$(PAPER)' IMAGES="$(or $(IMAGES),$$images)"

performance: images ## what the platform costs: the same programs inside images and outside
	@. ./activate && $(PYTHON) -m campaign.performance && $(PYTHON) -m campaign.profile_performance

.PHONY: analysis-performance simulated-coverage
# On campaigns that are made up, in a temporary folder.
SAMPLES ?= 1e5,1e6,1e7
analysis-performance: .wyeast/venv/.for-run ## what analysis costs as campaigns grow (SAMPLES=1e5,1e6,1e7, CAMPAIGNS=10000)
	@$(PYTHON) -m tests.analysis.scale_benchmark --samples $(SAMPLES)
	@$(PYTHON) -m analysis.history_performance $(if $(CAMPAIGNS),--campaigns $(CAMPAIGNS))

simulated-coverage: .wyeast/venv/.for-run ## how often intervals hold a known truth and verdicts are false (TRIALS=500)
	@$(PYTHON) -m analysis.simulated_coverage $(if $(TRIALS),--trials $(TRIALS))

cluster-up: setup ## start a Slurm cluster in a box (NODES=4, LINK=100mbit|1gbit|10gbit|none)
	@$(CLUSTER) up $(if $(NODES),--nodes $(NODES)) $(if $(LINK),--link $(LINK))

cluster-status: .wyeast/venv/.for-run ## the nodes of the cluster in a box, their state and memory
	@$(CLUSTER) status

cluster-down: .wyeast/venv/.for-run ## end the cluster in a box with all that belongs to it
	@$(CLUSTER) down

cluster-performance: SITE = virtual
cluster-performance: images ## MPI against TCP, and containers against none, on the cluster in a box
	@export SITE=virtual && . ./activate && \
	    $(CLUSTER) exec -- $(PYTHON) -m campaign.cluster_performance

cluster-shell: .wyeast/venv/.for-run ## a shell of the user who submits jobs to the cluster in a box
	@export SITE=virtual && . ./activate && $(CLUSTER) exec -- sh

report: .wyeast/venv/.for-run ## make the report of a campaign again (CAMPAIGN=<folder of runs/>, or the latest)
	@$(PYTHON) -m analysis report $(or $(CAMPAIGN),latest)

.PHONY: calibrate accept-references
calibrate: .wyeast/venv/.for-run ## propose references from campaigns of SITE (CAMPAIGNS=a,b, ROUNDS: the fewest)
	@$(PYTHON) -m analysis calibrate '$(SITE)' --rounds $(ROUNDS) \
	    $(if $(CAMPAIGNS),--campaigns '$(CAMPAIGNS)')

accept-references: .wyeast/venv/.for-run ## put the proposed references of SITE in effect (DRY_RUN=1 shows them)
	@$(PYTHON) -m analysis accept-references '$(SITE)' $(if $(DRY_RUN),--dry-run)

bundle: .wyeast/venv/.for-run ## pack a campaign to be repeated elsewhere (CAMPAIGN, WITH_IMAGES=1, OUT, CREATOR, DRY_RUN=1)
	@$(PYTHON) -m campaign.bundle.make '$(or $(CAMPAIGN),latest)' $(if $(OUT),--out '$(OUT)') \
	    $(if $(WITH_IMAGES),--with-images) $(if $(CREATOR),--creator '$(CREATOR)') \
	    $(if $(DRY_RUN),--dry-run)

.PHONY: sample
sample: .wyeast/venv/.for-run ## put a part of a campaign into runs/sample, without the machine's names (CAMPAIGN, CHECKS: cells, DRY_RUN=1)
	@$(PYTHON) -m campaign.sample '$(or $(CAMPAIGN),latest)' $(if $(CHECKS),--cells '$(CHECKS)') \
	    $(if $(DRY_RUN),--dry-run)

rerun: setup ## verify a bundle, repeat it here and compare (BUNDLE, SITE, KEEP_IMAGES=1, AGAIN=1, HOST_MPI, DRY_RUN=1)
	@. ./activate && $(PYTHON) -m campaign.bundle.rerun '$(BUNDLE)' --site '$(SITE)' \
	    $(if $(KEEP_IMAGES),--keep-images) $(if $(AGAIN),--again) $(if $(DRY_RUN),--dry-run) \
	    $(if $(HOST_MPI),--host-mpi '$(HOST_MPI)') $(if $(MOST_BYTES),--most-bytes $(MOST_BYTES)) \
	    -- $(SUBMIT)

test-images:
	@$(MAKE) --no-print-directory images SITE=virtual

# The fast tests share the cores; what measures, or has ranks of its own, has them to itself.
FAST := not real and not browser and not cluster
CORES := $(shell nproc)
test: lint test-images test-packages ## all that decides whether a change lands: linters, unit and real tests
	@. ./activate && $(PYTHON) -m coverage erase; \
	run() { $(PYTHON) -m coverage run -m pytest --durations=40 --durations-min=3 "$$@" $(TESTS); }; \
	run -n $(CORES) -m "$(FAST)"; fast=$$?; run -m "not ($(FAST))"; real=$$?; \
	$(PYTHON) -m coverage combine -q && $(PYTHON) -m coverage report; \
	case "$$fast $$real" in "0 0") ;; "0 5"|"5 0") [ -n "$(TESTS)" ];; *) exit 1;; esac

unit: .wyeast/venv/.for-test ## the fast tests alone
	@$(PYTHON) -m pytest -q -n $(CORES) -m "$(FAST)"

lint: .wyeast/venv/.for-test ## style and types of the Python code
	@$(PYTHON) -m ruff check -q && $(PYTHON) -m ruff format -q --check && $(PYTHON) -m mypy

# A compiler and a BLAS for the programs outside images, what finds their wrong accesses to memory,
# a browser for the report, and a registry with keys and certificates for images that travel.
TEST_PACKAGES := gcc libc6-dev make libopenblas-dev chromium valgrind docker-registry gnupg openssl
test-packages:
	@dpkg-query -W $(TEST_PACKAGES) >/dev/null 2>&1 || { \
	    [ "$$(id -u)" = 0 ] || { \
	        echo "test: install these packages first: $(TEST_PACKAGES)" >&2; exit 1; }; \
	    echo "installing $(TEST_PACKAGES) from the distribution"; mkdir -p .wyeast/logs; \
	    { apt-get update -qq; apt-get install -y -qq --no-install-recommends $(TEST_PACKAGES); } \
	        >.wyeast/logs/test-packages.log 2>&1 || { \
	        echo "test: could not install; see .wyeast/logs/test-packages.log" >&2; exit 1; }; }

lock: ## renew requirements*.lock (needs uv)
	uv pip compile -q --python-version 3.11 --generate-hashes --no-header \
	    requirements.in -o requirements.lock
	uv pip compile -q --python-version 3.11 --generate-hashes --no-header \
	    requirements-test.in -c requirements.lock -o requirements-test.lock

# What nothing here could make again.
KEPT := trust bundles
clean: ## remove everything that was installed or built; campaigns, bundles and keys to sign with stay
	@[ ! -d .wyeast ] || find .wyeast -mindepth 1 -maxdepth 1 $(KEPT:%=! -name %) -exec rm -rf {} +
	@rm -rf benchmarks/build

# A stamp is written last, so an interrupted installation is repeated.
.wyeast/venv/.for-run: requirements.lock
	@$(call install_packages,requirements.lock)
	@touch $@

.wyeast/venv/.for-test: requirements-test.lock .wyeast/venv/.for-run
	@$(call install_packages,requirements-test.lock)
	@touch $@

define install_packages
	mkdir -p .wyeast; \
	python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "installing $(PYTHON_PACKAGES) from the distribution"; \
	        { apt-get update -qq; apt-get install -y -qq --no-install-recommends \
	            $(PYTHON_PACKAGES); } >.wyeast/python.log 2>&1; \
	    fi; }; \
	python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "setup: Python 3.11 or newer with its venv module is missing;" \
	        "install the packages: $(PYTHON_PACKAGES)" >&2; exit 1; }; \
	echo "installing the Python packages of $(1)"; \
	[ -x $(PYTHON) ] || python3 -m venv .wyeast/venv || exit 1; \
	$(PYTHON) -m pip install -q --disable-pip-version-check --require-hashes -r $(1) || { \
	    echo "setup: the packages of $(1) could not be installed; pip's own words stand above" >&2; \
	    exit 1; }
endef
