# drivesim. `make` builds build/sim; `make help` lists the rest.
# V=release (default) debug asan tsan cov fuzz chooses a variant, BUILD another folder, EXTRA_CFLAGS adds flags.
V      ?= release
BUILD  ?= build
OBJ    := $(BUILD)/$(V)
ifeq ($(origin CC),default)
CC     := gcc
endif

WARN   := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings \
          -Wformat=2 -Wvla -Wundef
OPT_release := -O2 -g
OPT_debug   := -O0 -g3
OPT_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan    := -O1 -g -fsanitize=thread
OPT_cov     := -O0 -g --coverage
OPT_fuzz    := -O2 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
ifeq ($(V),fuzz)
CC     := clang
endif
# What may run on a coroutine's stack of 64 KiB: as it is shipped. Unoptimised, and among redzones, frames are larger.
FRAME  := $(if $(filter release,$(V)),-Wframe-larger-than=16384)
# One short line a file; VERBOSE=1 shows the commands, make -s nothing.
SILENT   := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
say       = $(if $(VERBOSE),,@$(if $(SILENT),,printf '  %s\n' '$(1)';))
# Without git, as in the container's build, from the files that name the commit.
VERSION := $(shell git describe --always --dirty 2>/dev/null || { ref=$$(sed -n 's/^ref: //p' .git/HEAD); \
           { cat ".git/$${ref:-HEAD}" || sed -n "s|^\\([0-9a-f]*\\) $$ref\$$|\\1|p" .git/packed-refs; } | cut -c1-7 | grep .; } 2>/dev/null || echo unknown)

CPPFLAGS := -Isrc -I. -D_GNU_SOURCE -I/usr/include/postgresql -I/usr/include/libxml2
CFLAGS   := -std=gnu11 $(WARN) $(OPT_$(V)) -pthread $(EXTRA_CFLAGS)
LDFLAGS  := $(filter -fsanitize=% -fno-sanitize% --coverage,$(CFLAGS)) -pthread
# libs3 statically: its shared object drags a second, GnuTLS libcurl into the process. Its gmtime() is not safe in threads:
# src/store/blob.c serves it.
LIBS     := -l:libs3.a -Wl,--wrap=gmtime,--wrap=curl_easy_perform -lcurl -lssh2 -lxml2 -lssl -lcrypto -lpq -lhiredis -lcjson -lhttp_parser -ljwt -lcrypt -lz -lm

LAYERS   := base net store drive server seed sim checks
dir_of    = $(firstword $(wildcard src/$(1) $(1)))
src_of    = $(filter-out sim/main.c,$(foreach d,$(call dir_of,$(1)),$(wildcard $d/*.[cS] $d/*/*.c)))
obj_of    = $(patsubst %,$(OBJ)/%.o,$(basename $(call src_of,$(1)))) $(if $(EMBED_$(1)),$(OBJ)/embed_$(1).o)
# Files that a layer carries within the binary, as the table embed_LAYER of base/embed.h.
EMBED_drive  := $(sort $(wildcard src/drive/stack/npm/*))
EMBED_server := $(sort $(wildcard src/server/sql/*.sql))
ARCHIVES := $(foreach l,$(LAYERS),$(OBJ)/lib$(l).a)
LINK      = -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LIBS)

all: $(BUILD)/sim

# build/sim is the release build; the others stay in their folders.
ifeq ($(V),release)
$(BUILD)/sim: $(OBJ)/sim.bin
	@ln -sfn $(V)/sim.bin $@
else
.PHONY: $(BUILD)/sim
$(BUILD)/sim: $(OBJ)/sim.bin
endif
$(OBJ)/sim.bin: $(OBJ)/sim/main.o $(ARCHIVES) $(OBJ)/flags
	$(call say,LINK $@)$(CC) $(LDFLAGS) -o $@ $(OBJ)/sim/main.o $(LINK)

define archive_rule
$(OBJ)/lib$(1).a: $(call obj_of,$(1)) $(OBJ)/flags
	@rm -f $$@
	@ar qcs $$@ $(call obj_of,$(1))
endef
$(foreach l,$(LAYERS),$(eval $(call archive_rule,$(l))))

$(OBJ)/%.o: %.c $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC $<)$(CC) $(CPPFLAGS) $(CFLAGS) $(FRAME) -MMD -MP -c -o $@ $<
$(OBJ)/%.o: %.S $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC $<)$(CC) $(CPPFLAGS) -MMD -MP -c -o $@ $<

$(OBJ)/embed_%.S: FORCE
	@mkdir -p $(@D)
	@{ printf '.section .note.GNU-stack,"",%%progbits\n.section .rodata\n'; n=0; \
	for f in $(EMBED_$*); do printf 'name%d: .asciz "%s"\ndata%d: .incbin "%s"\nend%d: .byte 0\n' $$n $${f##*/} $$n $$f $$n; n=$$((n+1)); done; \
	printf '.section .data.rel.ro,"aw"\n.balign 8\n.globl embed_$*\nembed_$*:\n'; i=0; \
	while [ $$i -lt $$n ]; do printf '.quad name%d, data%d, end%d - data%d\n' $$i $$i $$i $$i; i=$$((i+1)); done; \
	printf '.quad 0, 0, 0\n'; } > $@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
.PRECIOUS: $(OBJ)/embed_%.S
.SECONDEXPANSION:
$(OBJ)/embed_%.o: $(OBJ)/embed_%.S $$(EMBED_$$*)
	$(call say,CC $<)$(CC) -c -o $@ $<

# The version stands in one object only, so that a commit does not rebuild the rest.
$(OBJ)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@
$(OBJ)/src/base/version.o: CPPFLAGS += -DDRIVESIM_VERSION='"$(VERSION)"'
$(OBJ)/src/base/version.o: $(OBJ)/version

# Rebuilds everything when the flags change.
FLAGS_TEXT := $(CC) -Isrc -I. $(CFLAGS) $(FRAME) $(LIBS)
$(OBJ)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS_TEXT))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(FLAGS_TEXT))' > $@

# ---- tests: make test runs all of them, each kind also stands alone. PROVE_FLAGS=-v shows each line ----
PROVE = prove --timer $(PROVE_FLAGS) --exec 'perl tests/one'
export TEST_NOTES := $(abspath $(BUILD)/test-notes)
export SIM := $(abspath $(OBJ)/sim.bin)
export DRIVESIM_ROOT := $(CURDIR)

$(OBJ)/tests/%: tests/unit/%.c $(ARCHIVES) $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC $<)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LINK) -lcmocka

# These need servers: tests/sys/store.t starts a stack, the others a server of their kind.
export LIVE_STORE := $(abspath $(OBJ)/tests/live_store)
export LIVE_SFTP := $(abspath $(OBJ)/tests/live_sftp)
export LIVE_SFTP_DRIVE := $(abspath $(OBJ)/tests/live_sftp_drive)
export LIVE_WEBDAV := $(abspath $(OBJ)/tests/live_webdav)
$(OBJ)/tests/live_%: tests/sys/live_%.c $(ARCHIVES) $(OBJ)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LINK) -lcmocka

# Under a sanitizer whoever has something to report, a server that a test left in the background too, writes a file:
# one of them fails the kind of test.
ifneq ($(filter asan tsan,$(V)),)
REPORTS := $(abspath $(OBJ))/reports
export ASAN_OPTIONS  := log_path=$(REPORTS)/asan
export UBSAN_OPTIONS := print_stacktrace=1:log_path=$(REPORTS)/ubsan
export TSAN_OPTIONS  := second_deadlock_stack=1:log_path=$(REPORTS)/tsan
WATCHED = rm -rf $(REPORTS); mkdir -p $(REPORTS);
JUDGED  = ; status=$$?; cat $(REPORTS)/* 2>/dev/null && status=1; exit $$status
endif

# UNIT, COMP and SYS name those that are to run, by the names of their files; without them, all.
UNIT    ?= $(wildcard tests/unit/test_*.c)
unit: $(patsubst %,$(OBJ)/tests/%,$(basename $(notdir $(UNIT))))
	@$(WATCHED) CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) -j4 $^ $(JUDGED)
# The others wait more than they work: so many at once, those that take longest first.
LONG := bigfiles content meta store run chaos servers judge stack bulk webdav sftp refusals file_cases run_verdicts cases run_sessions ramp run_events run_streams
SLOW_FIRST = $(wildcard $(LONG:%=tests/$@/%.t)) $(filter-out $(LONG:%=tests/$@/%.t),$(sort $(wildcard tests/$@/*.t)))
chosen     = $(if $(1),$(patsubst %,tests/$@/%.t,$(basename $(notdir $(1)))),$(SLOW_FIRST))
comp: $(OBJ)/sim.bin
	@$(WATCHED) $(PROVE) -j6 $(call chosen,$(COMP)) $(JUDGED)
# Each has a stack of its own.
sys: $(OBJ)/sim.bin $(patsubst tests/sys/%.c,$(OBJ)/tests/%,$(wildcard tests/sys/live_*.c))
	@$(WATCHED) $(PROVE) -j4 $(call chosen,$(SYS)) $(JUDGED)

# A fuzz target with libFuzzer under V=fuzz, with a main that replays the corpus in git under any other variant.
FUZZ         := $(patsubst tests/fuzz/fuzz_%.c,$(OBJ)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 30
FUZZ_MAIN    := $(if $(filter fuzz,$(V)),-fsanitize=fuzzer,tests/fuzz/replay.c)
$(OBJ)/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(wildcard tests/fuzz/*.h) $(ARCHIVES) $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC $<)$(CC) $(CPPFLAGS) -Itests/fuzz $(CFLAGS) $(LDFLAGS) -o $@ $< $(FUZZ_MAIN) $(LINK)

replay: $(FUZZ)
	@$(WATCHED) $(PROVE) $(FUZZ) $(JUDGED)
fuzz-run: $(FUZZ)
	@for f in $(FUZZ); do n=$${f##*/}; mkdir -p $(OBJ)/found/$$n; echo "fuzzing $$n"; \
	  $$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=$(OBJ)/found/$$n. $(OBJ)/found/$$n tests/fuzz/corpus/$$n || exit 1; done
fuzz:
	@$(MAKE) --no-print-directory V=fuzz fuzz-run

# The engine and sim http beside a bare libcurl loop, wrk, ab and hey on one local nginx. It says when the machine had other
# work to do; its exit status is 1 when a goal was not held.
$(OBJ)/bench/%: tests/bench/%.c $(ARCHIVES) $(OBJ)/flags
	@mkdir -p $(@D)
	$(call say,CC $<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LINK)
bench: $(OBJ)/bench/engine $(OBJ)/bench/floor $(OBJ)/sim.bin
	@perl tests/bench/engine.pl $(abspath $(OBJ)/bench/engine) $(abspath $(OBJ)/sim.bin); status=$$?; \
	  perl tests/bench/judge.pl && exit $$status

# Each planted fault under a short load: which check finds it? RUNS, CLEAN, FAULTS, JOBS, WRITE: see tests/judge.pl.
judge: $(OBJ)/sim.bin
	@RUNS=$(RUNS) CLEAN=$(CLEAN) FAULTS=$(FAULTS) JOBS=$(JOBS) WRITE=$(WRITE) perl tests/judge.pl

# Each part of the stack taken away in each way while apps run. RUNS, ONLY, JOBS, WRITE: see tests/chaos.pl.
chaos: $(OBJ)/sim.bin
	@RUNS=$(RUNS) ONLY=$(ONLY) JOBS=$(JOBS) WRITE=$(WRITE) perl tests/chaos.pl

# The corpora are replayed under the sanitizers whatever the variant: a parser's fault may not show otherwise.
# A kind that fails does not keep the others from running; what failed is told again at the end.
test: deps
	@rm -rf $(TEST_NOTES); failed=; for kind in lint unit 'V=asan replay' comp sys; do \
	  echo "== $$kind"; $(MAKE) --no-print-directory $$kind || failed="$$failed $${kind##* }"; done; \
	  perl tests/one; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# ---- from nothing to a verdict ----
deps:
	@.ci/deps build stack test
	@$(MAKE) --no-print-directory all
	@$(SIM) stack fetch --dir $(BUILD)
demo: deps
	@.ci/demo $(SIM) $(BUILD)/demo

# ---- to have it everywhere ----
PREFIX ?= /usr/local
BINDIR  = $(DESTDIR)$(PREFIX)/bin
COMPDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
install: $(OBJ)/sim.bin
	@install -d $(BINDIR) $(COMPDIR)
	@install $(OBJ)/sim.bin $(BINDIR)/sim
	@install -m 644 sim/completion.bash $(COMPDIR)/sim
	@echo 'installed $(BINDIR)/sim'
uninstall:
	rm -f $(BINDIR)/sim $(COMPDIR)/sim

# ---- lint ----
C_FILES = $(shell git ls-files '*.c' '*.h')
lint:
	@clang-format --dry-run -Werror $(C_FILES)
	@perl tests/lint/rules.pl .
	@$(PROVE) $(wildcard tests/lint/*.t)
	@for h in $(filter %.h,$(C_FILES)); do printf '#include "%s"\n' $$h | \
	  $(CC) $(CPPFLAGS) -Itests/unit -Itests/fuzz $(CFLAGS) -Wno-unused-function -fsyntax-only -x c - || \
	  { echo "$$h does not stand alone"; exit 1; }; done
	@$(CC) $(CPPFLAGS) -Itests/fuzz $(CFLAGS) -fsyntax-only $(wildcard tests/fuzz/*.c)

define HELP
make                build/sim
make V=asan         a variant, in build/V: release debug asan tsan cov
make deps           installs what Debian and npm have to give, where it is missing
make demo           the main job: stack, seed 9 0.1, run 20 60 6 60, checks
make test           lint and every test; make V=asan test all under the sanitizers
make unit           unit tests     make comp    component tests, against a scripted server
                    UNIT=test_hist, COMP=run, SYS=stack: those alone
make replay         fuzz corpora   make sys     system tests, on a stack of their own
make fuzz           libFuzzer on every parser, FUZZ_SECONDS=30 each
make judge          plants each fault in the server and shows the check that finds it
make chaos          takes each part of the stack away in each way; RUNS=5 for the long form
make bench          the HTTP engine beside a bare libcurl loop, wrk, ab and hey; memory a held stream; what the judgement costs
make lint           format, ranks, owners of headers, banned functions
make install        sim and its completion for bash, below PREFIX=/usr/local; make uninstall removes them
make clean          removes build/
endef
export HELP
help:
	@echo "$$HELP"

clean:
	rm -rf $(BUILD)

.PHONY: all bench chaos judge test unit comp sys replay fuzz fuzz-run install uninstall lint help clean FORCE
FORCE:
-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
