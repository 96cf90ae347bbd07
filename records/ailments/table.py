"""The one table of causes that are known by what was printed (`records.causes` looks them up).

Failed launches, failed commands and `make doctor` have their sentences from it.
"""

from records.ailments.of_launches import (
    DEVICE_NOT_THERE,
    FULL_SHARED_MEMORY,
    LOCKED_MEMORY,
    MISSING_LIBRARY,
    MORE_THAN_CORES,
    NEWER_C_LIBRARY,
    NO_ACCOUNT,
    NO_CMA,
    NO_CONNECTION,
    NO_MUNGE,
    NO_OVERLAY,
    NO_PMI,
    NO_PMI_PLUGIN,
    NO_PMIX_LIBRARY,
    NO_PROVIDER,
    NO_PSEC,
    NO_SSH,
    NO_WORK_FOLDER,
    NOT_THAT_MANY,
    OLD_PROCESSOR,
    OPEN_FILES,
    PMIX_VERSIONS,
    PROCESS_LIMIT,
    RANKS_AS_ROOT,
    RETRIES,
    SHARED_MEMORY_SEGMENTS,
    UCX_PROC_LINK,
    WRONG_INTERFACES,
)
from records.ailments.of_machines import (
    ADDRESS_SPACE,
    FILE_LIMIT,
    FULL_DISK,
    HIDDEN_PROGRAM,
    NO_FUSE,
    NO_NAME,
    NO_NAMESPACES,
    NO_NAMESPACES_FOR_ROOT,
    NO_PROC,
    NO_SUBORDINATE_IDS,
    NO_TERMINALS,
    OTHER_PROCESSORS,
)

#: All known causes; each goes before those after it. What a limit of namespaces or of shared memory
#: says may also say that there is no space.
KNOWN = (
    NO_PROC, NO_NAMESPACES, NO_NAMESPACES_FOR_ROOT, NO_FUSE, NO_NAME, NO_SUBORDINATE_IDS,
    NO_OVERLAY, NO_TERMINALS, HIDDEN_PROGRAM, NO_PMIX_LIBRARY, NO_PMI_PLUGIN, NO_PMI, NO_MUNGE,
    RANKS_AS_ROOT, MORE_THAN_CORES, NO_SSH, UCX_PROC_LINK, NO_CMA, SHARED_MEMORY_SEGMENTS,
    FULL_SHARED_MEMORY, RETRIES, NO_CONNECTION, NO_PROVIDER, NEWER_C_LIBRARY, MISSING_LIBRARY,
    OLD_PROCESSOR, PROCESS_LIMIT, OPEN_FILES, NO_WORK_FOLDER, NO_ACCOUNT, NOT_THAT_MANY, FULL_DISK,
    FILE_LIMIT, ADDRESS_SPACE, OTHER_PROCESSORS,
    # What is also said where nothing fails comes after what is not.
    NO_PSEC, PMIX_VERSIONS, LOCKED_MEMORY, DEVICE_NOT_THERE, WRONG_INTERFACES,
)  # fmt: skip
