# The kernels and their tests, which need only gcc and nvcc. A file's suffix names its CPUs.
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
KERNELS_SRC := $(filter-out %_avx2.c %_avx512.c %_neon.c,$(wildcard kernels/*.c kernels/*/*.c))
ifeq ($(MACHINE)$(SCALAR),x86_64)
KERNELS_SRC += $(wildcard kernels/cpu/*_avx2.c kernels/cpu/*_avx512.c)
endif
ifeq ($(MACHINE),aarch64)
KERNELS_SRC += $(wildcard kernels/cpu/*_neon.c)
endif
KERNELS_OBJ := $(patsubst %.c,$(B)/%.o,$(KERNELS_SRC))
AVX2 := -mavx2 -mfma -mf16c
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vnni -mavx512vpopcntdq -mpopcnt -mprefer-vector-width=512
$(B)/kernels/%_avx2.o: override CFLAGS += $(AVX2)
$(B)/kernels/%_avx512.o: override CFLAGS += $(AVX512)
ifneq ($(SCALAR),)
CPPFLAGS += -DFRAMED_SCALAR
endif
KERNELS_LIBS := -lm -pthread
ifneq ($(NVCC),)
# nvcc itself reports its folder, because the one on PATH may be a wrapper. The runtime of a distribution's package is in
# the linker's default folders.
CUDA_TOP := $(patsubst TOP=%,%,$(filter TOP=%,$(shell $(NVCC) --dryrun -x cu -c /dev/null -o /dev/null 2>&1)))
CUDART := $(firstword $(wildcard $(patsubst %,$(CUDA_TOP)/%/libcudart_static.a,lib64 lib targets/x86_64-linux/lib)) \
	-lcudart_static)
CUDA_KNOWN := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
# A package supports every x86 GPU from Turing on: code for one capability runs on later ones of the same major number, and
# PTX of the lowest and the newest covers the rest. Without a list the code is built for this machine's GPUs. A machine without
# a GPU builds only PTX, in half the time; a GPU's driver compiles it at the first start, in half a minute, and caches it.
CUDA_PACKAGE_ARCHS := $(filter 75 80 89 90 100 120,$(CUDA_KNOWN))
CUDA_ARCHS ?= $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -nu)
ARCHS := $(if $(filter package,$(CUDA_ARCHS)),$(CUDA_PACKAGE_ARCHS),$(CUDA_ARCHS))
PTX_ARCHS := $(or $(sort $(firstword $(ARCHS)) $(lastword $(ARCHS))),75)
NVCCFLAGS = -O3 -I. -std=c++17 -fmad=false -Xcompiler -Wall,-Wextra,-Werror,-pthread,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
	$(foreach a,$(ARCHS),-gencode=arch=compute_$(a),code=sm_$(a)) \
	$(foreach a,$(PTX_ARCHS),-gencode=arch=compute_$(a),code=compute_$(a)) -Xfatbin=--compress-all
KERNELS_OBJ += $(patsubst %.cu,$(B)/%.cu.o,$(wildcard kernels/cuda/*.cu))
CPPFLAGS += -DFRAMED_CUDA
KERNELS_LIBS += $(CUDART) -lrt -ldl
endif

KERNELS := $(B)/libkernels.a
$(KERNELS): $(KERNELS_OBJ)
	$(archive)

$(B)/kernels/%.o: kernels/%.c
	$(call compile,$(CC) $(CPPFLAGS) $(CFLAGS) $(PIXEL_CFLAGS))

$(B)/%.cu.o: %.cu
	$(call compile,$(NVCC) $(CPPFLAGS) $(NVCCFLAGS) -MMD -MF $(@:.o=.d))

# --- their tests: a program per file
KERNEL_TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/kernels/*.c tests/kernels/*/*.c))
ifneq ($(NVCC),)
CUDA_TESTS := $(patsubst %.cu,$(B)/%,$(wildcard tests/kernels/cuda/*.cu))
endif
# Without a GPU these tests only report that there is none; check-long compiles them there.
KERNEL_TESTS += $(if $(ARCHS),$(CUDA_TESTS))

$(B)/tests/kernels/%: $(B)/tests/kernels/%.o $(KERNELS)
	$(link) $(KERNELS_LIBS)

$(B)/tests/kernels/%: $(B)/tests/kernels/%.cu.o $(KERNELS)
	$(link) $(KERNELS_LIBS)

$(B)/tests/kernels/%.o: tests/kernels/%.c
	$(call compile,$(CC) $(CPPFLAGS) $(CFLAGS) $(PIXEL_CFLAGS))

# CUDA kernels compiled for the host, if the compiler also accepts C++. At -O1 they are as fast, and compile in half the
# time. With sanitizers gcc 12 falsely warns that loaded variables are uninitialized.
ifeq ($(shell ($(CC) -x c++ -fsyntax-only /dev/null) >/dev/null 2>&1 && echo yes),yes)
$(B)/tests/kernels/cpu/versions: $(B)/tests/kernels/cpu/warp_axis.o
$(B)/tests/kernels/detect: $(B)/tests/kernels/cpu/detect_blocks.o
$(B)/tests/kernels/cpu/blocks: $(B)/tests/kernels/cpu/statistics_blocks.o $(B)/tests/kernels/cpu/motion_blocks.o
endif
$(B)/tests/kernels/cpu/%.o: tests/kernels/cpu/%.cpp
	$(call compile,$(CC) -x c++ $(CPPFLAGS) $(filter-out -std=%,$(CFLAGS)) -std=c++17 -O1 $(if $(SAN),-Wno-maybe-uninitialized) -fno-exceptions -fno-rtti -fno-threadsafe-statics \
		-Wno-unknown-pragmas)

.PHONY: check-kernels check-versions check-aarch64-build
check-kernels: $(KERNEL_TESTS) ## test every version of every kernel on this machine: needs only gcc, and nvcc for CUDA
	@set -e; for t in $(KERNEL_TESTS); do $$t; done

check-versions: $(B)/tests/kernels/cpu/versions ## compare every version for the CPU with the reference (CASES=100000)
	@$(if $(CASES),CASES=$(CASES)) $<

# tests/run runs these in qemu: linked statically, so that qemu needs no libraries, and without sanitizers.
CROSS_TESTS := cpu/backend cpu/versions detect digests statistics
check-aarch64-build: ## build the tests of the CPU's kernels for aarch64, on another machine
ifneq ($(MACHINE),aarch64)
	@$(MAKE) --no-print-directory B=$(B)/aarch64 CROSS=aarch64-linux-gnu- CC=aarch64-linux-gnu-gcc SAN= LDFLAGS=-static \
		$(CROSS_TESTS:%=$(B)/aarch64/tests/kernels/%)
endif
