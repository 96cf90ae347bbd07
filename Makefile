# Every command that a person types. `make help` lists them.
SHELL := /bin/sh
SITE ?= local
# quick, paper (the reports' parameters) or site (as large as the site's memory allows).
TIER ?= quick
PYTHON := .wyeast/venv/bin/python
CLUSTER := $(PYTHON) -m cluster
# Jobs for the cluster in a box are submitted by its user, from its controller's host.
SUBMIT = $(if $(filter virtual box-mpirun box-sge,$(value SITE)),$(CLUSTER) exec --)
# What `python3 -m venv` needs on a bare Debian machine.
PYTHON_PACKAGES := python3 python3-venv

# Below, the user's PYTHON, SHELL or PYTHONPATH would replace those of this file.
ifneq ($(findstring e,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),)
$(error make -e, or an e in MAKEFLAGS, has variables of the environment replace those of the Makefile: \
    leave it out)
endif
ACTIVATED := $(value WYEAST_ROOT)
CHOSEN_BEFORE := $(value WYEAST_ACTIVATED)
export WYEAST_ROOT := $(CURDIR)
export PYTHONPATH := $(CURDIR)
# What can be typed in the shell that make was called from: recipes have a PATH of their own.
ifeq ($(MAKELEVEL),0)
export WYEAST_CALLERS_PATH := $(value PATH)
endif
# As in `activate`: files are in UTF-8, and another Python's library and habits, and what is for
# debugging it and makes it several times slower, stay outside.
export PYTHONUTF8 := 1
unexport PYTHONHOME PYTHONPLATLIBDIR PYTHONOPTIMIZE PYTHONWARNINGS PYTHONINSPECT PYTHONIOENCODING \
    PYTHONDEVMODE PYTHONTRACEMALLOC PYTHONMALLOC PYTHONHASHSEED PYTHONVERBOSE PYTHONDEBUG \
    PYTHONPROFILEIMPORTTIME PYTHONWARNDEFAULTENCODING
# By these pip would put packages elsewhere; `install_packages` names what its own files say of that.
unexport PIP_TARGET PIP_PREFIX PIP_ROOT

# A value reaches a recipe as it was typed: make expands nothing in it, and the shell sees one
# word. `given` and `option` are empty if nothing was given.
quoted = $(if $(findstring $(line_break),$(value $1)),$(error $1 has a line break in it; give it in \
    one line),'$(subst ','\'',$(value $1))')
given = $(if $(value $1),$(call quoted,$1))
option = $(if $(value $2),$1=$(call quoted,$2))
flag = $(if $(value $2),$1)
define line_break


endef

# A script of the folder that this file is in, as one word of the shell.
HERE := $(dir $(lastword $(MAKEFILE_LIST)))
script = '$(subst ','\'',$(HERE)campaign/bin/$1)'

# What is on or off. Whoever gives 0, or no, wants it off, and gets nothing else by accident.
SWITCHES := AGAIN ALLOW_UNSIGNED ALL_PAIRS DRY_RUN ESTIMATE INSECURE KEEP_IMAGES LOOK \
    RAW_BY_RANK REDACT WITH_IMAGES

# A target takes the variables in the brackets that end its help line. Anything else on the
# command line is refused before anything is done; environment variables are not checked.
GIVEN := $(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(name)))
ifneq ($(MAKECMDGOALS)$(GIVEN),)
shell_word = '$(subst ','\'',$1)'
REFUSED := $(shell goals=$(call shell_word,$(MAKECMDGOALS)) given=$(call shell_word,$(GIVEN)) \
    awk -f $(call shell_word,$(dir $(lastword $(MAKEFILE_LIST))))campaign/bin/request.awk \
    $(call shell_word,$(lastword $(MAKEFILE_LIST))) 2>/dev/null)
$(if $(REFUSED)$(filter-out 0,$(.SHELLSTATUS)),$(error $(or $(REFUSED),awk could not read the Makefile)))
$(foreach name,$(GIVEN),$(if $(call quoted,$(name)),)\
    $(eval override $(name) := $$(value $(name)))$(eval export $(name)))
$(foreach name,$(filter $(SWITCHES),$(GIVEN)),$(if $(subst x1,,x$(strip $(value $(name)))),\
    $(if $(value $(name)),$(error $(name)=$(value $(name)): give $(name)=1, or leave it out))))
endif
# A checkout that was copied with what is installed in it would run the other one's programs.
ifneq ($(filter-out help clean,$(MAKECMDGOALS)),)
COPIED := $(shell sh $(call script,copied))
$(if $(COPIED),$(error $(COPIED)))
endif
# A test that is not there would be missed only once images are built and lint is through.
ifneq ($(filter test test-long,$(MAKECMDGOALS)),)
NO_TESTS := $(foreach one,$(value TESTS),$(if $(wildcard $(firstword $(subst ::, ,$(one)))),,$(one)))
$(if $(strip $(NO_TESTS)),$(error there is no $(firstword $(NO_TESTS)); name files of tests, as in \
    TESTS=tests/test_makefile.py))
endif
# Where whoever uses this checkout writes, if that is not the checkout (records/layout.py).
ifneq ($(filter-out help,$(MAKECMDGOALS)),)
# What a shell or the loader remarks on standard error is no folder, and no name is expanded.
HOME_OF_USER := $(shell sh $(call script,home) '$(subst ','\'',$(value PWD))' \
    '$(subst ','\'',$(value ACTIVATED))' '$(subst ','\'',$(value CHOSEN_BEFORE))')
$(if $(filter-out 0,$(.SHELLSTATUS)),$(error nothing was done, for the reason above))
export WYEAST_HOME := $(HOME_OF_USER)
unexport WYEAST_ACTIVATED
endif
# Recipes pass the given variables on in the environment. A make that is started here may accept
# fewer, so it does not get them on its command line.
MAKEOVERRIDES := $(if $(filter PYTHON,$(GIVEN)),PYTHON=$(PYTHON))


.PHONY: help setup apptainer images image admit push pull new-key sign verify bill reproducibility \
    spack spack-lock spack-mirror spack-sources spack-environment spack-externals spack-release new-site check-site doctor run nightly study performance report \
    bundle rerun \
    cluster-up cluster-status cluster-down \
    cluster-shell cluster-performance test test-long test-images unit lint \
    test-packages lock clean

help: ## list the commands
	@awk -f $(call script,help.awk) $(MAKEFILE_LIST)
	@echo; echo "PAPER of make study: $(notdir $(patsubst %/study.yaml,%,$(wildcard literature/*/study.yaml)))"

setup: .wyeast/venv/.for-run apptainer ## install Python packages and Apptainer for the project

apptainer: .wyeast/venv/.for-run
	@$(PYTHON) -m containers.apptainer_setup --quiet

images: setup ## pull or build the images that are out of date (IMAGES=a,b; all; those of SITE; IMPLEMENTATIONS, IMAGES_FROM=oras://host/path|none, BUILDER=spack, SOURCES=<folder>: of what Spack builds, BOOTSTRAP=docker)
ifeq ($(value BUILDER),)
	@images=$(or $(call given,IMAGES),$(call given,IMPLEMENTATIONS),$$($(PYTHON) -m campaign.choice \
	    $(call option,--site,SITE))) && $(PYTHON) -m containers.sharing.obtain --images="$$images" \
	    $(call option,--site,SITE) $(call option,--images-from,IMAGES_FROM) \
	    $(call option,--bootstrap,BOOTSTRAP)
else
	@$(PYTHON) -m containers.build $(call option,--builder,BUILDER) $(call option,--bootstrap,BOOTSTRAP) \
	    $(call option,--sources,SOURCES) \
	    --images=$(or $(call given,IMPLEMENTATIONS),$(call given,IMAGES),default)
endif

spack: .wyeast/venv/.for-run ## find Spack (SPACK_ROOT, PATH) or clone its pinned release
	@$(PYTHON) -m containers.spack

spack-lock: .wyeast/venv/.for-run ## renew the locks of spack.yaml and say what changed (IMPLEMENTATIONS=a,b)
	@$(PYTHON) -m containers.spack.lock $(call option,--implementations,IMPLEMENTATIONS)

spack-mirror: .wyeast/venv/.for-run ## fill a mirror of sources to carry to a site without internet (IMPLEMENTATIONS=a,b)
	@$(PYTHON) -m containers.spack.mirror $(call option,--implementations,IMPLEMENTATIONS)

spack-sources: .wyeast/venv/.for-run ## fill a folder with what Spack builds from, the distribution's archives first, and list what is missing (SOURCES=<folder>, IMPLEMENTATIONS=a,b)
	@$(PYTHON) -m containers.spack.given --sources=$(call quoted,SOURCES) \
	    $(call option,--implementations,IMPLEMENTATIONS)

spack-externals: .wyeast/venv/.for-run ## prove that what Spack takes from the images' base, or with WYEAST_SITE from this machine, can be built with (IMPLEMENTATIONS=a,b)
	@$(PYTHON) -m containers.spack.externals $(call option,--implementations,IMPLEMENTATIONS)

spack-environment: .wyeast/venv/.for-run ## write spack.yaml of one implementation each, which may be copied anywhere, as Ramble does (IMPLEMENTATIONS=a,b, OUT=folder)
	@$(PYTHON) -m containers.spack.standalone $(call option,--implementations,IMPLEMENTATIONS) \
	    $(call option,--out,OUT)

spack-release: .wyeast/venv/.for-run ## make the archives of our programs' releases and hold them against the recipe's digests (VERSION=0.2.0: of a new one)
	@$(PYTHON) -m containers.spack.release $(call option,--version,VERSION)

image: setup ## pack an MPI installed on this machine into an image (PREFIX=/opt/some-mpi NAME=some-mpi-1.2)
	@$(PYTHON) -m containers.build --prefix=$(call quoted,PREFIX) --name=$(call quoted,NAME)

new-site: .wyeast/venv/.for-run ## inspect this machine and write a site folder (NAME, FROM=infiniband|slingshot|ethernet|fat-node|laptop, SCHEDULER=slurm|pbs|lsf|sge|flux|local, DRY_RUN=1)
	@. ./activate && $(PYTHON) -m campaign.site.new $(call option,--scheduler,SCHEDULER) \
	    $(call option,--from,FROM) $(call flag,--dry-run,DRY_RUN) -- $(call quoted,NAME)

# What needs no job is checked before images are built, which takes minutes.
CHECK_SITE = $(SUBMIT) $(PYTHON) -m campaign.site.check $(call option,--site,SITE) \
    $(call option,--images,IMAGES)
check-site: setup ## verify a site by the preflight of each of its images, and say what to fix (SITE, IMAGES, IMAGES_FROM)
	@. ./activate && $(CHECK_SITE) --look
	@$(MAKE) --no-print-directory images
	@. ./activate && $(CHECK_SITE)

doctor: setup ## say what ails a site's machine and nodes, and what helps (SITE, IMAGES: whose preflight looks at the nodes, LOOK=1: no job; or OUTPUT=<file>: what a failed launch said)
	@. ./activate && $(if $(call given,OUTPUT),,$(SUBMIT)) $(PYTHON) -m campaign.site.doctor \
	    $(call option,--site,SITE) $(call option,--images,IMAGES) $(call option,--output,OUTPUT) \
	    $(call flag,--look,LOOK)

admit: setup ## list where images come from and which may run; vouch for some (IMAGES=a,b)
	@$(PYTHON) -m containers.admission --images=$(call quoted,IMAGES)

push: setup ## push images to a registry (REGISTRY=oras://host/path, IMAGES=a,b, INSECURE=1, DRY_RUN=1)
	@$(PYTHON) -m containers.sharing.registry push --registry=$(call quoted,REGISTRY) \
	    --images=$(call quoted,IMAGES) $(call flag,--insecure,INSECURE) $(call flag,--dry-run,DRY_RUN)

pull: setup ## pull images by digest (REGISTRY=oras://host/path, IMAGES=a,b, LOCK=<file>|registry, ALLOW_UNSIGNED=1, INSECURE=1, DRY_RUN=1)
	@$(PYTHON) -m containers.sharing.registry pull --registry=$(call quoted,REGISTRY) \
	    --images=$(call quoted,IMAGES) --lock=$(call quoted,LOCK) \
	    $(call flag,--allow-unsigned,ALLOW_UNSIGNED) $(call flag,--insecure,INSECURE) \
	    $(call flag,--dry-run,DRY_RUN)

new-key: setup ## make a key to sign images with (NAME="First Last" EMAIL=name@host)
	@$(PYTHON) -m containers.trust new-key --name=$(call quoted,NAME) --email=$(call quoted,EMAIL)

sign: setup ## sign images and renew their digests (IMAGES=a,b, KEY=<fingerprint>, PASSPHRASE_FILE=<file>, DRY_RUN=1)
	@$(PYTHON) -m containers.trust sign --images=$(call quoted,IMAGES) --key=$(call quoted,KEY) \
	    $(call option,--passphrase-file,PASSPHRASE_FILE) $(call flag,--dry-run,DRY_RUN)

verify: setup ## verify digests, and signatures with the keys in containers/trust (IMAGES=a,b, KEY=<fingerprint>)
	@$(PYTHON) -m containers.trust verify --images=$(call quoted,IMAGES) --key=$(call quoted,KEY)

bill: setup ## write each image's bill of materials beside it, in CycloneDX (IMAGES=a,b)
	@$(PYTHON) -m containers.bill_of_materials --images=$(call quoted,IMAGES)

reproducibility: setup ## build images again and say whether they are the same (IMAGES=a,b)
	@$(PYTHON) -m containers.sharing.reproducibility --images=$(call quoted,IMAGES)

# What is impossible in any case is refused before images are built.
MEASURE = $(PYTHON) -m campaign $(call option,--site,SITE) $(call option,--tier,TIER) \
    $(call option,--rounds,ROUNDS) $(call option,--budget,BUDGET) \
    $(call option,--images,IMAGES) $(call option,--checks,CHECKS) \
    $(call option,--resume,RESUME) $(call flag,--estimate,ESTIMATE) \
    $(call option,--host-mpi,HOST_MPI) $(call flag,--raw-by-rank,RAW_BY_RANK) \
    $(call flag,--all-pairs,ALL_PAIRS) \
    $(call option,--ranks,RANKS) $(call option,--ranks-per-node,RANKS_PER_NODE) \
    $(call option,--study,STUDY) $(call option,--driver,DRIVER)
run: .wyeast/venv/.for-run ## measure a campaign and report it (SITE, TIER, ROUNDS or BUDGET=15m, IMAGES, CHECKS, HOST_MPI, RAW_BY_RANK, ALL_PAIRS=1, RANKS=2,4,8, RANKS_PER_NODE=1,2, RESUME, ESTIMATE, STUDY, DRIVER=job, IMAGES_FROM, BUILDER, BOOTSTRAP)
	@. ./activate && $(MEASURE) --look $(if $(filter file,$(origin SITE)),--site-by-default)
	@$(MAKE) --no-print-directory images
	@. ./activate && $(SUBMIT) $(MEASURE)

# It depends on no other target: a night updates nothing. A job on the cluster is inside it already.
nightly: ## measure a night, repeat what is worse, decide (SITE, TIER, ROUNDS, IMAGES, CHECKS, NAME, KEEP_NIGHTS, RESUME, DRY_RUN=1)
	@[ -x $(PYTHON) ] || { echo "nightly: nothing is installed; first: make images SITE="$(call quoted,SITE) >&2; exit 1; }
	@. ./activate && $(if $(SLURM_JOB_ID),,$(SUBMIT)) $(PYTHON) -m campaign.nightly $(call option,--site,SITE) \
	    $(call option,--tier,TIER) $(call option,--rounds,ROUNDS) $(call option,--images,IMAGES) \
	    $(call option,--checks,CHECKS) $(call option,--name,NAME) $(call option,--resume,RESUME) \
	    $(call option,--keep-nights,KEEP_NIGHTS) $(call flag,--dry-run,DRY_RUN)

study: .wyeast/venv/.for-run ## repeat a report and test its claims (PAPER=<name>, SITE, TIER, ROUNDS, IMAGES, CHECKS, HOST_MPI, RAW_BY_RANK, ALL_PAIRS, ESTIMATE, IMAGES_FROM, BUILDER)
	@images=$$($(PYTHON) -m campaign.choice --study=$(call quoted,PAPER)) && $(MAKE) \
	    --no-print-directory run STUDY=$(call quoted,PAPER) \
	    IMAGES=$(or $(call given,IMAGES),"$$images")

performance: images ## measure what the platform costs: the same programs inside and outside images (SITE, IMAGES, BUILDER)
	@. ./activate && $(PYTHON) -m costs.inside_and_outside && $(PYTHON) -m costs.profiling

.PHONY: analysis-performance simulated-coverage simulated-designs
# On made-up campaigns in a temporary folder.
analysis-performance: .wyeast/venv/.for-test ## measure how the cost of the analysis grows (AXES="rounds=3,30,300 nights", REPEAT=3, CURVES=docs/growth, CAMPAIGNS=10000)
	@$(PYTHON) -m tests.analysis.growth_benchmark $(call option,--axes,AXES) $(call option,--repeat,REPEAT) \
	    $(call option,--curves,CURVES)
	@$(PYTHON) -m analysis.simulation.history $(call option,--campaigns,CAMPAIGNS)

simulated-designs: .wyeast/venv/.for-run ## simulate what campaign designs decide in the same time (TRIALS=200, BUDGET=644: seconds)
	@$(PYTHON) -m analysis.simulation.designs $(call option,--trials,TRIALS) $(call option,--budget,BUDGET)

simulated-coverage: .wyeast/venv/.for-run ## simulate how often intervals contain a known truth and verdicts are false (TRIALS=500)
	@$(PYTHON) -m analysis.simulation.coverage $(call option,--trials,TRIALS)

cluster-up: setup ## start a cluster in a box (NODES=4, LINK=10mbit|100mbit|1gbit|10gbit|none, SCHEDULER=slurm|sge)
	@$(CLUSTER) up $(call option,--nodes,NODES) $(call option,--link,LINK) \
	    $(call option,--scheduler,SCHEDULER)

cluster-status: .wyeast/venv/.for-run ## show the nodes of the cluster in a box, their state and memory
	@$(CLUSTER) status

cluster-down: .wyeast/venv/.for-run ## stop the cluster in a box and everything that belongs to it
	@$(CLUSTER) down

cluster-performance: SITE = virtual
cluster-performance: images ## compare MPI with TCP, and containers with none, on the cluster in a box (IMAGES, BUILDER)
	@export SITE=virtual && . ./activate && \
	    $(CLUSTER) exec -- $(PYTHON) -m costs.network

cluster-shell: .wyeast/venv/.for-run ## open a shell as the user who submits jobs to the cluster in a box
	@export SITE=virtual && . ./activate && $(CLUSTER) exec -- sh

report: .wyeast/venv/.for-run ## make the report of a campaign again (CAMPAIGN=<folder of runs/>, or the latest)
	@$(PYTHON) -m analysis report -- $(or $(call given,CAMPAIGN),latest)

.PHONY: audit
# SITE has a default, which would leave out the campaigns of other sites.
audit: .wyeast/venv/.for-run ## say which campaigns are proven, and what depends on the others (CAMPAIGN, SITE; all of runs/)
	@$(PYTHON) -m analysis audit $(call option,--campaign,CAMPAIGN) \
	    $(if $(filter SITE,$(GIVEN)),$(call option,--site,SITE))

.PHONY: appendix
appendix: .wyeast/venv/.for-run ## write a paper's artifact description and evaluation, LaTeX and Markdown (CAMPAIGN, OUT: a folder, REPOSITORY=<address>)
	@$(PYTHON) -m analysis export --format appendix $(call option,--output,OUT) \
	    $(call option,--repository,REPOSITORY) -- $(or $(call given,CAMPAIGN),latest)

.PHONY: history
history: .wyeast/venv/.for-run ## write the page of all nights and campaigns, runs/history.html (SITE; OUT=<file>)
	@$(PYTHON) -m analysis history --html $(or $(call given,OUT),"$${WYEAST_HOME:-$$PWD}"/runs/history.html) \
	    $(if $(filter SITE,$(GIVEN)),$(call option,--site,SITE))

.PHONY: calibrate accept-references
calibrate: .wyeast/venv/.for-run ## propose references from a site's campaigns (SITE, CAMPAIGNS=a,b, ROUNDS: the minimum)
	@$(PYTHON) -m analysis calibrate $(call option,--rounds,ROUNDS) \
	    $(call option,--campaigns,CAMPAIGNS) -- $(call quoted,SITE)

accept-references: .wyeast/venv/.for-run ## put a site's proposed references into effect (SITE, DRY_RUN=1 shows them)
	@$(PYTHON) -m analysis accept-references $(call flag,--dry-run,DRY_RUN) -- $(call quoted,SITE)

bundle: .wyeast/venv/.for-run ## pack a campaign to be repeated elsewhere (CAMPAIGN, WITH_IMAGES=1, REDACT=1, KEEP=<pattern>, OUT, CREATOR=<names>, REPOSITORY=<address>, MOST_BYTES, DRY_RUN=1)
	@$(PYTHON) -m campaign.bundle.make $(call option,--out,OUT) $(call flag,--with-images,WITH_IMAGES) \
	    $(call option,--creator,CREATOR) $(call option,--repository,REPOSITORY) $(call option,--most-bytes,MOST_BYTES) $(call flag,--dry-run,DRY_RUN) \
	    $(call flag,--redact,REDACT) $(call option,--keep,KEEP) -- $(or $(call given,CAMPAIGN),latest)

.PHONY: sample
sample: .wyeast/venv/.for-run ## pack part of a campaign into runs/sample.tar.gz, without the machine's names (CAMPAIGN, CHECKS: cells, DRY_RUN=1)
	@$(PYTHON) -m campaign.bundle.sample $(call option,--cells,CHECKS) $(call flag,--dry-run,DRY_RUN) \
	    -- $(or $(call given,CAMPAIGN),latest)

rerun: setup ## verify a bundle, repeat it here and compare (BUNDLE, SITE, KEEP_IMAGES=1, ALLOW_UNSIGNED=1, AGAIN=1, HOST_MPI, MOST_BYTES, MOST_ROUNDS, DRY_RUN=1)
	@. ./activate && $(PYTHON) -m campaign.bundle.rerun $(call quoted,BUNDLE) $(call option,--site,SITE) \
	    $(call flag,--keep-images,KEEP_IMAGES) $(call flag,--again,AGAIN) \
	    $(call flag,--dry-run,DRY_RUN) $(call option,--host-mpi,HOST_MPI) \
	    $(call option,--most-bytes,MOST_BYTES) $(call option,--most-rounds,MOST_ROUNDS) \
	    $(call flag,--allow-unsigned,ALLOW_UNSIGNED) -- $(SUBMIT)

test-images:
	@$(MAKE) --no-print-directory images SITE=virtual

# In lanes (tests/lanes.py): what may share the cores does, and what judges times has them to itself.
TEST_NEEDS := lint test-images test-packages .wyeast/tools/.ready
test: $(TEST_NEEDS) ## run everything that decides whether a change lands: linters, unit and real tests (TESTS=a file)
	@. ./activate && $(PYTHON) -m tests.lanes $$TESTS

test-long: $(TEST_NEEDS) ## run the same with coverage and each of two MPIs, and long tests: before a release (TESTS=a file)
	@. ./activate && $(PYTHON) -m tests.lanes --long $$TESTS

unit: .wyeast/venv/.for-test ## run only the fast tests
	@. ./activate && $(PYTHON) -m tests.lanes --only fast

.PHONY: docs
docs: .wyeast/venv/.for-run .wyeast/tools/.ready ## build the site of the documentation, .wyeast/docs/index.html (OUT: another folder)
	@$(PYTHON) -m documentation $(call option,--out,OUT)

lint: .wyeast/venv/.for-test ## check style, types and import order of the Python code
	@$(PYTHON) -m ruff check -q && $(PYTHON) -m ruff format -q --check && $(PYTHON) -m mypy && \
	    { said=$$(.wyeast/venv/bin/lint-imports --no-cache 2>&1) || { echo "$$said"; exit 1; }; }

# A compiler and a BLAS for the programs outside images, valgrind for their memory accesses,
# a browser for the report, and a registry with keys, certificates and a network of its own for
# images that travel; the shells that people have, and the modules of centres; a compiler for
# another architecture and an emulator of its processors.
TEST_PACKAGES := gcc libc6-dev make libopenblas-dev chromium valgrind docker-registry gnupg openssl \
    iproute2 zsh fish tcsh lmod gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# SimGrid plays more ranks than any machine at hand has, and LaTeX makes pages of a paper's appendix.
test-long: TEST_PACKAGES += libsimgrid-dev texlive-latex-recommended
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
	uv pip compile -q --python-version 3.11 --generate-hashes --no-header \
	    requirements-tools.in -o requirements-tools.lock

# What could not be made again here.
KEPT := trust bundles
clean: ## remove everything that was installed or built, unless it is in use; campaigns, bundles and signing keys stay
	@sh $(call script,in_use) "$${WYEAST_HOME:-.}"
	@cd "$${WYEAST_HOME:-.}" && { [ ! -d .wyeast ] || \
	    find .wyeast -mindepth 1 -maxdepth 1 $(KEPT:%=! -name %) -exec rm -rf {} +; }
	@[ -n "$$WYEAST_HOME" ] || rm -rf benchmarks/build

# The stamp is written last, so an interrupted installation is repeated. Where somebody's umask lets
# others write, they could put their own code in its place.
.wyeast/venv/.for-run: requirements.lock
	@umask go-w; $(call install_packages,requirements.lock,polars pydantic reframe rich scipy typer yaml); touch $@

.wyeast/venv/.for-test: requirements-test.lock .wyeast/venv/.for-run
	@umask go-w; $(call install_packages,requirements-test.lock,hypothesis mypy pytest); touch $@

# Programs whose requirements may contradict ours: an environment apart.
.wyeast/tools/.ready: requirements-tools.lock .wyeast/venv/.for-run
	@$(call refuse_read_only,docs)
	@echo "installing the Python packages of requirements-tools.lock"
	@umask go-w; $(take_lock); [ -x .wyeast/tools/bin/python ] || $(PYTHON) -m venv .wyeast/tools
	@umask go-w; $(take_lock); PIP_USER=0 .wyeast/tools/bin/python -m pip install -q --disable-pip-version-check \
	    --require-hashes -r requirements-tools.lock || { echo "docs: the packages of" \
	    "requirements-tools.lock could not be installed; pip's own message is above" >&2; exit 1; }
	@umask go-w; touch $@


# The first Python that is new enough and has its venv module; centres have newer ones by name.
FIND_PYTHON = for one in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$one" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	    { echo "$$one"; break; }; done

# What is installed is whose the checkout is.
refuse_read_only = [ -w . ] || { echo "$1: nothing can be written in $$(pwd -P), and what its version" \
    "needs is not installed there: whoever it belongs to can do that: make $1; or make a checkout of" \
    "your own: git clone $$(pwd -P)" >&2; exit 1; }

# One at a time installs in a checkout, and whoever waits says for whom. Where nothing can be locked
# (NFS without locks, no flock) two at once are not noticed. The lock ends with the recipe's line.
define take_lock
	mkdir -p .wyeast/locks; \
	if command -v flock >/dev/null; then \
	    exec 9>>.wyeast/locks/setup; \
	    flock --nonblock 9 || [ $$? != 1 ] || { \
	        read -r holder <.wyeast/locks/setup; \
	        echo "setup: another one installs in this checkout and is waited for: $$holder" >&2; \
	        flock 9; }; \
	    echo "process $$$$" >.wyeast/locks/setup; \
	fi
endef

# The packages of a lock, and the modules that show that they are there: pip may have been told, in
# its own files, to put them elsewhere.
define install_packages
	$(call refuse_read_only,setup); \
	python=$$($(FIND_PYTHON)); \
	[ "$$(id -u)" != 0 ] || ! command -v "$${python:-python3}" >/dev/null || \
	    "$${python:-python3}" -m records.acting_user || exit 1; \
	$(take_lock); \
	done=yes; for one in $^; do [ $@ -nt "$$one" ] || done=; done; \
	[ -z "$$done" ] || exit 0; \
	if [ -z "$$python" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing $(PYTHON_PACKAGES) from the distribution"; \
	    { apt-get update -qq; apt-get install -y -qq --no-install-recommends \
	        $(PYTHON_PACKAGES); } >.wyeast/python.log 2>&1; \
	    python=$$($(FIND_PYTHON)); \
	fi; \
	[ -n "$$python" ] || { \
	    echo "setup: Python 3.11 or newer with its venv module is missing, as python3 or by its own" \
	        "name such as python3.12; on Debian install the packages: $(PYTHON_PACKAGES)" >&2; \
	    exit 1; }; \
	echo "installing the Python packages of $(1)"; \
	[ -x $(PYTHON) ] || "$$python" -m venv .wyeast/venv || exit 1; \
	PIP_USER=0 $(PYTHON) -m pip install -q --disable-pip-version-check --require-hashes -r $(1) || { \
	    echo "setup: the packages of $(1) could not be installed; pip's own message is above" >&2; \
	    exit 1; }; \
	for module in $(2); do \
	    said=$$($(PYTHON) -c "import $$module" 2>&1 >/dev/null) || { code=$$?; \
	        case $$said in \
	        *"No module named '$$module'"*) echo "setup: pip has installed $(1), and $$module is not" \
	            "found: look for target, prefix or root in: $(PYTHON) -m pip config list" ;; \
	        *) echo "$$said"; echo "setup: pip has installed $$module, and Python cannot load it" \
	            "(exit code $$code, its own message is above): remove .wyeast/venv and run this again" ;; \
	        esac >&2; exit 1; }; \
	done
endef
