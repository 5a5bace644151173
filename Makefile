# framed: `make` builds build/framed, `make demo` is the main job, `make check` runs every test.
#   SAN=address,undefined | thread    build and test with sanitizers, in a folder of their own
#   CC=clang                          another compiler
#   CROSS=aarch64-linux-gnu-          for another machine, against Debian's packages of its architecture
#   NVCC=                             build without CUDA even where nvcc is installed
#   CUDA_ARCHS="90"                   only these compute capabilities
#   V=1                               show the commands
#   MUTATIONS=5000 SEED=7             for torture: how many damaged clips of each codec, and which
#   FLIPS=1000 SEED=7                 for torture: how many bit errors in each H.265 clip, and which (200)
#   SOAK_SECONDS=3600                 for torture: how long twenty cameras run, of which eight flap (600)
#   SOCKETS_ARGS="--framed OTHER"     for bench-sockets: a second binary beside the first
#   FAULTS="fin reset"                for bench-faults: only these
#   FUZZ_SECONDS=600                  for fuzz: how long each part is tried
#   CLIP=FILE PEERS_ARGS="--cpu 1"    for bench-peers: the pictures, and its other options
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := 0.1.0
CC ?= cc
PREFIX ?= /usr/local
SAN ?=
CROSS ?=
NVCC ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
Q := $(if $(V),,@)
TARGET := $(patsubst %-,%,$(CROSS))
B ?= build$(if $(CROSS),/$(TARGET))$(if $(SAN),/san-$(SAN))
PKG_CONFIG := pkg-config
ifneq ($(CROSS),)
CC := $(CROSS)gcc
override NVCC :=
PKG_CONFIG := PKG_CONFIG_LIBDIR=/usr/lib/$(TARGET)/pkgconfig:/usr/share/pkgconfig pkg-config
endif

WARN := -Wall -Wextra -Werror
CPPFLAGS += -I. -D_GNU_SOURCE -DFRAMED_VERSION_TEXT='"$(VERSION)"'
CFLAGS ?= -O3 -g
override CFLAGS += -std=c17 $(WARN) -fno-strict-aliasing -ffp-contract=off -pthread -MMD -MP
ifneq ($(SAN),)
override CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
override LDFLAGS += -fsanitize=$(SAN)
ifneq ($(filter thread,$(SAN)),)
# A fence against writers in other processes, whom the sanitizer does not watch, is no mistake. The warning is gcc's own.
override CFLAGS += -Wno-unknown-warning-option -Wno-tsan
endif
endif

# --- kernels: gcc and nvcc are enough. A file's suffix names the CPUs that it is for.
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
KERNELS_SRC := $(filter-out %_avx2.c %_avx512.c %_neon.c,$(wildcard kernels/*.c kernels/*/*.c))
ifeq ($(MACHINE),x86_64)
KERNELS_SRC += $(wildcard kernels/cpu/*_avx2.c kernels/cpu/*_avx512.c)
endif
ifeq ($(MACHINE),aarch64)
KERNELS_SRC += $(wildcard kernels/cpu/*_neon.c)
endif
KERNELS_OBJ := $(patsubst %.c,$(B)/%.o,$(KERNELS_SRC))
$(B)/kernels/%_avx2.o: override CFLAGS += -mavx2 -mfma -mf16c
$(B)/kernels/%_avx512.o: override CFLAGS += -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq \
	-mavx512vbmi -mavx512vnni -mprefer-vector-width=512
KERNELS_LIBS := -lm -pthread
ifneq ($(NVCC),)
# nvcc itself says where it lives: the one on PATH may be a wrapper. The runtime of a distribution's package is in
# the linker's own folders.
CUDA_TOP := $(patsubst TOP=%,%,$(filter TOP=%,$(shell $(NVCC) --dryrun -x cu -c /dev/null -o /dev/null 2>&1)))
CUDART := $(firstword $(wildcard $(patsubst %,$(CUDA_TOP)/%/libcudart_static.a,lib64 lib targets/x86_64-linux/lib)) \
	-lcudart_static)
CUDA_KNOWN := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
# 75 and up; the letters are for one chip alone, and so would their PTX be
CUDA_ARCHS ?= $(filter-out 3% 5% 6% 70 72 88 %a %f,$(CUDA_KNOWN))
CUDA_LAST := $(lastword $(sort $(filter-out 1%,$(CUDA_ARCHS))) $(sort $(filter 1%,$(CUDA_ARCHS))))
NVCCFLAGS := -O3 -I. -std=c++17 --threads 2 -fmad=false -Xcompiler -Wall,-Wextra,-Werror,-pthread,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
	$(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(a),code=sm_$(a)) \
	-gencode=arch=compute_$(CUDA_LAST),code=compute_$(CUDA_LAST)
KERNELS_OBJ += $(patsubst %.cu,$(B)/%.cu.o,$(wildcard kernels/cuda/*.cu))
CPPFLAGS += -DFRAMED_CUDA
KERNELS_LIBS += $(CUDART) -lrt -ldl
endif

# --- config and daemon: Debian's libraries, asked for only when they are needed
CONFIG_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard config/*.c))
DAEMON_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out daemon/main.c,$(wildcard daemon/*.c daemon/*/*.c)))
PACKAGES := libavformat libavcodec libswscale libavutil libuv yaml-0.1 jansson libmicrohttpd libsystemd
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
DAEMON_LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES)) $(KERNELS_LIBS)
CONFIG_LIBS = $(shell $(PKG_CONFIG) --libs yaml-0.1) $(KERNELS_LIBS)

all: $(B)/framed $(B)/framed-bench

$(B)/framed: $(B)/daemon/main.o $(DAEMON_OBJ) $(CONFIG_OBJ) $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)
ifeq ($(NVCC),)
	@echo "framed: built without CUDA: $(if $(CROSS),cross-built,no nvcc found (12 or later adds the cuda backend))"
endif

$(B)/kernels/%.o: kernels/%.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/%.cu.o: %.cu
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(NVCC) $(CPPFLAGS) $(NVCCFLAGS) -MMD -MF $(@:.o=.d) -c -o $@ $<

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) -c -o $@ $<

# --- tests: a program per file, linked with no more than its folder may know
TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/kernels/*.c tests/kernels/*/*.c tests/config/*.c tests/daemon/*.c tests/daemon/*/*.c tests/bench/tests/*.c))
ifneq ($(NVCC),)
TESTS += $(patsubst %.cu,$(B)/%,$(wildcard tests/kernels/cuda/*.cu))
endif

FUZZERS := config control http ring slices

$(B)/tests/kernels/%: $(B)/tests/kernels/%.o $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(KERNELS_LIBS)

$(B)/tests/kernels/%: $(B)/tests/kernels/%.cu.o $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(KERNELS_LIBS)

$(B)/tests/kernels/%.o: tests/kernels/%.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/tests/config/%: $(B)/tests/config/%.o $(CONFIG_OBJ) $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CONFIG_LIBS)

$(B)/tests/daemon/%: $(B)/tests/daemon/%.o $(DAEMON_OBJ) $(CONFIG_OBJ) $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

$(B)/tests/daemon/output/disk: $(B)/tests/faults/disk.o
$(B)/tests/daemon/service/control: LDFLAGS += -Wl,--wrap=calloc
$(B)/tests/daemon/device/devices: LDFLAGS += -Wl,--wrap=decode_device_open,--wrap=decode_device_close

# A framed whose cuda side and disk fail to order, on any box: the devices alone are built anew.
$(B)/faults/devices.o: daemon/device/devices.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(CPPFLAGS) -DFRAMED_CUDA -Dcuda_backend=faulty_backend $(PKG_CFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/framed-faults: $(B)/faults/devices.o $(B)/tests/faults/faults.o $(B)/tests/faults/disk.o $(B)/daemon/main.o \
		$(filter-out $(B)/daemon/device/devices.o,$(DAEMON_OBJ)) $(CONFIG_OBJ) $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

# Preloaded into a framed, makes one of its calls fail.
$(B)/faults/nth.so: tests/faults/nth.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fsanitize=% -fno-sanitize%,$(CFLAGS)) $(if $(SAN),-DSANITIZED) -fPIC -fno-builtin -shared -o $@ $< -ldl

.PRECIOUS: $(B)/%.o $(B)/tests/kernels/%.o $(B)/%.cu.o
tests: $(TESTS) $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%) $(B)/framed-faults $(B)/faults/nth.so manuals units

# --- framed-bench, which measures a box; it runs the framed beside it
BENCH_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out %/main.c,$(wildcard tests/bench/*.c)))
ifneq ($(NVCC),)
BENCH_OBJ += $(patsubst %.cu,$(B)/%.cu.o,$(wildcard tests/bench/cuda/*.cu))
endif

$(B)/framed-bench: $(B)/tests/bench/main.o $(BENCH_OBJ) $(DAEMON_OBJ) $(CONFIG_OBJ) $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

$(B)/tests/bench/tests/%: $(B)/tests/bench/tests/%.o $(BENCH_OBJ) $(DAEMON_OBJ) $(CONFIG_OBJ) $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

# --- our kernels beside libyuv, swscale and OpenCV: C++ for OpenCV's header alone
CXX ?= c++
PEERS_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out %/workers.c,$(wildcard tests/bench/peers/*.c))) $(B)/tests/bench/peers/opencv.o
PEERS_ARGS ?=

$(B)/tests/bench/peers/%.o: tests/bench/peers/%.cpp
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CXX) $(CPPFLAGS) -isystem /usr/include/opencv4 $(filter-out -std=%,$(CFLAGS)) -std=c++17 -c -o $@ $<

$(B)/bench-peers: $(PEERS_OBJ) $(KERNELS_OBJ)
	$(Q)$(CXX) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs libavformat libavcodec libswscale libavutil) \
		-lyuv -lopencv_imgproc -lopencv_core $(KERNELS_LIBS)

bench-peers:
	@scripts/setup peers
	@$(MAKE) --no-print-directory $(B)/bench-peers
	@$(B)/bench-peers $(if $(CLIP),--clip '$(CLIP)') $(PEERS_ARGS)

# A frame over one worker of the cpu backend and over all.
$(B)/bench-workers: $(B)/tests/bench/peers/workers.o $(KERNELS_OBJ)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(KERNELS_LIBS)

bench-workers: $(B)/bench-workers
	@$(B)/bench-workers $(WORKERS)

# The whole daemon on one core, beside decoding alone and the ffmpeg program.
bench-core:
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@scripts/bench_core.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --framed $(B)/framed $(CORE_ARGS)

# framed and the ffmpeg program, alone and with a supervisor, under the same faults; some minutes.
bench-faults:
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed
	@FRAMED=$(B)/framed FRAMED_FAULTS="$(FAULTS)" tests/torture/beside_ffmpeg.py

# What scraping the counters costs under full load.
bench-scrape:
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_scrape.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --framed $(B)/framed $(SCRAPE_ARGS)

# The ages of frames after a client stood still, and the rate of 1080p frames, over unix and tcp.
bench-sockets:
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_sockets.py --framed $(B)/framed $(SOCKETS_ARGS)

# --- memory: what `framed check` plans beside what is used; MEMORY_ARGS as scripts/bench_memory.py says
bench-memory:
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_memory.py --framed $(B)/framed --clips $(B)/memory $(MEMORY_ARGS)

# --- fuzzing: FUZZ_SECONDS each; what it finds worth keeping goes to the build's own corpus first. make check gives each
# part the files of its corpus once, by a main in place of libFuzzer's.
FUZZ_SECONDS ?= 60

# What they drive, and of the kernels no more than that needs: the rest takes minutes to build with sanitizers.
FUZZED_CONFIG_OBJ := $(CONFIG_OBJ) $(patsubst %,$(B)/kernels/%.o,image processors)
FUZZED_OBJ := $(FUZZED_CONFIG_OBJ) $(filter $(B)/daemon/base/% $(B)/daemon/output/%,$(DAEMON_OBJ)) \
	$(patsubst %,$(B)/daemon/%.o,decode/frame service/control service/http)
FUZZED_BY := $(FUZZERS:%=$(B)/fuzz_%) $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%)

$(filter %_control %_http,$(FUZZED_BY)): $(B)/tests/fuzz/dialogue.o
$(filter %_ring,$(FUZZED_BY)): $(B)/tests/fuzz/ring_model.o
$(filter %_slices,$(FUZZED_BY)): $(patsubst %,$(B)/daemon/decode/%.o,hevc_cabac hevc_headers hevc_residual hevc_slice nal slice_check)
$(filter %_control %_http %_ring,$(FUZZED_BY)): $(B)/tests/fuzz/turns.o
$(filter-out %_config,$(FUZZED_BY)): $(FUZZED_OBJ)
$(filter %_config,$(FUZZED_BY)): $(FUZZED_CONFIG_OBJ)

$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(DAEMON_LIBS)

$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

fuzz:
	@scripts/setup fuzz
	@$(MAKE) --no-print-directory NVCC= CC=clang SAN=address,undefined CFLAGS='-g -O1 -fsanitize=fuzzer-no-link' \
		B=$(B)/fuzz $(FUZZERS:%=$(B)/fuzz/fuzz_%)
	@set -e; for f in $(FUZZERS); do \
		mkdir -p $(B)/corpus/$$f; \
		echo "fuzz_$$f"; \
		$(B)/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=60 -max_len=4096 \
			-artifact_prefix=$(B)/fuzz/ $(B)/corpus/$$f tests/fuzz/$$f; \
	done

# --- what a user calls. Set-up comes first and in a make of its own: before it there is no compiler.
demo:
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@B=$(B) scripts/demo

check:
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench tests
	@$(MAKE) --no-print-directory check-aarch64-build
	@B=$(B) FRAMED=$(B)/framed SAN=$(SAN) tests/run

# An hour of what make check tries in seconds: cameras that fail for long, a thousand reloads, MUTATIONS of a clip of
# each codec under the sanitizers, and every call of a running framed refused once.
MUTATIONS ?= 1000
FLIPS ?= 200
SOAK_SECONDS ?= 600
torture:
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed $(B)/faults/nth.so
	@set -e; for t in neighbours reconnects reload soak; do FRAMED=$(B)/framed SAN=$(SAN) \
		FRAMED_SOAK_SECONDS=$(SOAK_SECONDS) tests/torture/$$t.py; done
	@$(MAKE) --no-print-directory SAN=address,undefined B=$(B)/torture $(B)/torture/tests/daemon/decode/mutations \
		$(B)/torture/tests/daemon/decode/bit_errors
	MUTATIONS=$(MUTATIONS) $(if $(SEED),SEED=$(SEED)) ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(B)/torture/tests/daemon/decode/mutations
	FLIPS=$(FLIPS) $(if $(SEED),SEED=$(SEED)) $(B)/torture/tests/daemon/decode/bit_errors
	FRAMED=$(B)/framed FRAMED_FAULTS_ALL=1 /usr/bin/python3 tests/e2e/test_refusals.py

# The kernels alone, every version on this box: wants nothing but gcc (and nvcc for CUDA).
KERNEL_TESTS := $(filter $(B)/tests/kernels/%,$(TESTS))
check-kernels: $(KERNEL_TESTS)
	@set -e; for t in $(KERNEL_TESTS); do $$t; done

# The cpu's versions alone, in CASES random cases.
check-versions: $(B)/tests/kernels/cpu/versions
	@$(if $(CASES),CASES=$(CASES)) $<

# The tests of the cpu's kernels for aarch64, which tests/run runs in qemu: linked statically, so that qemu needs no
# libraries, and without sanitizers.
CROSS_TESTS := cpu/backend cpu/versions coverage digests geometry warp yuv
ifneq ($(MACHINE),aarch64)
check-aarch64-build:
	@$(MAKE) --no-print-directory B=$(B)/aarch64 CROSS=aarch64-linux-gnu- CC=aarch64-linux-gnu-gcc SAN= LDFLAGS=-static \
		$(CROSS_TESTS:%=$(B)/aarch64/tests/kernels/%)
else
check-aarch64-build:
endif

# --- what is installed beside the program. The pages take their facts from the program and the sources.
MANUALS := $(patsubst scripts/man/%.md,$(B)/man/%,$(wildcard scripts/man/*.md))
INSTALLED := $(B)/systemd/framed.service $(B)/systemd/framed@.service $(B)/systemd/gpu.conf $(B)/systemd/groups.conf
UNITS ?= $(PREFIX)/lib/systemd/system
ZSH ?= $(PREFIX)/share/zsh/site-functions

$(B)/man/%: scripts/man/%.md scripts/manual daemon/wire.h $(B)/framed
	@mkdir -p $(@D)
	$(Q)scripts/manual $(B)/framed $< $(VERSION) > $@

# One instance of several: its own configuration and folders, all else as framed.service.
$(B)/systemd/framed@.service: systemd/framed.service
	@mkdir -p $(@D)
	$(Q)sed -E -e 's,^Description=.*,& (%i),' -e 's,/etc/framed/framed\.yaml,/etc/framed/%i.yaml,' \
		-e 's,^(Runtime|State)Directory=framed$$,&-%i,' -e 's,/usr/,$(PREFIX)/,' $< > $@

$(B)/systemd/%: systemd/%
	@mkdir -p $(@D)
	$(Q)sed 's,/usr/,$(PREFIX)/,' $< > $@

manuals: $(MANUALS)
units: $(INSTALLED)

install: $(B)/framed manuals units
	install -D -m 755 $(B)/framed $(DESTDIR)$(PREFIX)/bin/framed
	install -D -m 644 daemon/wire.h $(DESTDIR)$(PREFIX)/include/framed/wire.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/framed/examples config/framed.yaml
	install -D -m 644 -t $(DESTDIR)$(UNITS) $(filter %.service,$(INSTALLED))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/framed $(filter %.conf,$(INSTALLED))
	install -D -m 644 systemd/framed.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/framed.conf
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(filter %.1,$(MANUALS))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(filter %.5,$(MANUALS))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man7 $(filter %.7,$(MANUALS))
	install -D -m 644 scripts/completion/framed.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/framed
	install -D -m 644 -t $(DESTDIR)$(ZSH) scripts/completion/_framed

# The same as a Debian package.
deb:
	@scripts/setup deb
	@NVCC='$(NVCC)' CUDA_ARCHS='$(CUDA_ARCHS)' scripts/deb $(B)/deb $(VERSION)

# The package on a bare Debian in a container: minutes, and root.
check-deb: deb
	@scripts/setup check-deb
	@scripts/check_deb $(B)/deb/framed_$(VERSION)_*.deb $(B)/bookworm

# A relocatable folder for a GPU box without packages.
bundle:
	@scripts/setup bundle
	@$(MAKE) --no-print-directory $(B)/framed
	scripts/bundle $(B)/framed bundle

.PHONY: all tests demo check torture check-kernels check-versions check-aarch64-build bench-peers fuzz install bundle clean bench-workers bench-core bench-faults bench-scrape bench-sockets bench-memory manuals units deb check-deb
clean:
	rm -rf build bundle

-include $(shell find $(B) '(' -path $(B)/deb -o -path $(B)/bookworm ')' -prune -o -name '*.d' -print 2>/dev/null)
