# The tests: a program per file, linked only with the libraries that its folder may use.
PART_TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/config/*.c tests/daemon/*.c tests/daemon/*/*.c tests/client/*.c)) $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%)
TESTS := $(KERNEL_TESTS) $(PART_TESTS) $(patsubst %.c,$(B)/%,$(wildcard tests/bench/tests/*.c))

# There are 130 programs; lld links one in a third of the time that GNU ld takes.
ifneq ($(shell command -v ld.lld),)
$(TESTS) $(B)/tests/e2e/etcd_client: LDFLAGS += -fuse-ld=lld
endif

# These tests time nothing themselves. At -O1 they compile in half the time.
$(patsubst %,$(B)/tests/%.o,client/% cluster/% config/% daemon/% fuzz/%): override CFLAGS += -O1

$(B)/tests/config/%: $(B)/tests/config/%.o $(CONFIG)
	$(link) $(CONFIG_LIBS)

$(B)/tests/client/%: $(B)/tests/client/%.o $(B)/libframed.a
	$(link) $(KERNELS_LIBS)

$(B)/tests/client/boxes: $(KERNELS)
$(B)/tests/client/reader: LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=mmap
$(B)/tests/client/ring: LDFLAGS += -Wl,--wrap=send
$(B)/tests/client/detect: LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc

$(B)/tests/e2e/client_frames: $(B)/tests/e2e/client_frames.o $(B)/libframed.a
	$(link)

$(B)/tests/e2e/etcd_client: $(B)/tests/e2e/etcd_client.o $(DAEMON)
	$(link) $(DAEMON_LIBS)

$(B)/tests/daemon/%: $(B)/tests/daemon/%.o $(DAEMON)
	$(link) $(DAEMON_LIBS)

# These contain only the cluster code of the daemon; the simulation replaces the rest, etcd and the clock.
SIMULATED := $(B)/tests/daemon/cluster/member $(B)/tests/daemon/cluster/simulation
SIMULATION_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/cluster/simulation/*.c))
$(SIMULATED): $(B)/tests/daemon/cluster/%: $(B)/tests/daemon/cluster/%.o $(SIMULATION_OBJ) $(DAEMON)
	$(link) $(DAEMON_LIBS)
$(SIMULATED): LDFLAGS += -Wl,--wrap=pthread_create,--wrap=pthread_clockjoin_np,--wrap=log_event,--wrap=member_report

$(B)/tests/daemon/output/disk $(B)/tests/daemon/output/keep: $(B)/tests/faults/disk.o
$(B)/tests/daemon/codec/fallback: $(B)/tests/faults/decoder.o
$(B)/tests/daemon/codec/fallback: LDFLAGS += -Wl,--wrap=monotonic_ns
$(B)/tests/daemon/alert/alerts: LDFLAGS += -Wl,--wrap=posix_spawn
$(B)/tests/daemon/service/control: LDFLAGS += -Wl,--wrap=calloc
$(B)/tests/daemon/codec/early_output: LDFLAGS += -Wl,--wrap=early_output_open
$(B)/tests/daemon/device/devices $(B)/tests/daemon/device/several: LDFLAGS += -Wl,--wrap=decode_device_open,--wrap=decode_device_close

# A framed whose cuda backend and disk fail on request, on any box. Only devices.c is compiled again.
$(B)/faults/devices.o: daemon/device/devices.c
	$(call compile,$(CC) $(CPPFLAGS) -DFRAMED_CUDA -Dcuda_backend=faulty_backend $(PKG_CFLAGS) $(CFLAGS))

$(B)/framed-faults: $(B)/faults/devices.o $(B)/tests/faults/faults.o $(B)/tests/faults/disk.o $(B)/daemon/main.o \
		$(DAEMON)
	$(link) $(DAEMON_LIBS)

# A framed of another version, to test two versions that share cameras.
$(B)/other-version/cluster.o: override CPPFLAGS += -UFRAMED_VERSION_TEXT -DFRAMED_VERSION_TEXT='"another"'
$(B)/other-version/cluster.o: daemon/cluster/cluster.c
	$(call compile,$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS))

$(B)/framed-other-version: LDFLAGS += -Wl,--wrap=plan_print,--wrap=node_document_print
$(B)/framed-other-version: $(B)/other-version/cluster.o $(B)/tests/faults/other_version.o $(B)/daemon/main.o \
		$(DAEMON)
	$(link) $(DAEMON_LIBS)

# Preloaded into a framed: nth makes one of its calls fail, decoder makes a decoder of libavcodec fail.
$(B)/faults/%.so: tests/faults/%.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(filter-out -fsanitize=% -fno-sanitize%,$(CFLAGS)) $(if $(SAN),-DSANITIZED) -fPIC \
		-fno-builtin -shared -o $@ $< -ldl

# A driver of libva, built the same way if libva's headers are installed.
VA_DRIVER := $(if $(wildcard /usr/include/va/va_backend.h),$(B)/faults/fake_drv_video.so)
$(B)/faults/fake_drv_video.so: $(B)/faults/va_driver.so
	$(Q)cp $< $@

.PRECIOUS: $(B)/%.o $(B)/tests/kernels/%.o $(B)/%.cu.o
.PHONY: part-tests whole-tests tests torture
part-tests: $(B)/framed $(PART_TESTS) ## build only the tests that check-sanitized runs
whole-tests: $(filter-out $(PART_TESTS),$(TESTS)) $(B)/framed-faults $(B)/faults/nth.so $(B)/faults/decoder.so $(VA_DRIVER) $(B)/bench-detect $(B)/bench-fingerprint $(B)/tests/e2e/client_frames $(B)/tests/e2e/etcd_client client manuals units ## build the other tests
tests: whole-tests $(PART_TESTS) ## build every test

# At -O1 sanitizers find as much as at -O3, and the build takes half the time; -g1 has the line numbers for reports. The tests
# themselves are compiled at -O0: gcc takes three times as long at -O1. The kernels for AVX2 and AVX-512 are left out: they take
# half of the build, and the reference accesses the daemon's memory in their place. `make check SAN=address,undefined` builds
# and runs everything. Coverage makes a loop ten times slower, so it runs fewer cases.
ifneq ($(SAN),)
$(foreach part,config daemon client fuzz,$(B)/tests/$(part)/%.o): override CFLAGS := $(patsubst -O%,-O0,$(CFLAGS))
endif
SANITIZED := $(B)/sanitized
build_sanitized = $(MAKE) --no-print-directory $(JOBS) NVCC= SCALAR=1 SAN=address,undefined CFLAGS='-O1 -g1' B=$(SANITIZED) part-tests
.PHONY: check-long check-sanitized coverage
check-sanitized: ## run the tests of the configuration and of the daemon's parts, and the fuzzers' corpora, under ASan and UBSan
	@scripts/setup check
	@$(build_sanitized)
	@B=$(SANITIZED) SAN=address,undefined tests/run tests/config tests/daemon tests/client tests/fuzz

check-long: ## 82,000 cases of the warps and all colours of their reference, 50 pictures of each recipe (check: 14,000 and 20), kernels' tests under ASan and UBSan, the page's memory for five minutes, 20,000 schedules of faults of a cluster
	@scripts/setup check
	@$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/tests/kernels/cpu/versions $(B)/tests/kernels/warp $(B)/tests/daemon/cluster/simulation client $(CUDA_TESTS)
	@SEED=$(SEED) CASES=20000 $(B)/tests/daemon/cluster/simulation
	@B=$(B) LONG=1 tests/run tests/kernels/cpu/versions.c tests/kernels/warp.c tests/style/compilers.py test_recipes test_page
	@$(MAKE) --no-print-directory $(JOBS) NVCC= SAN=address,undefined CFLAGS='-O1 -g1' B=$(B)/long CASES=2000 check-kernels

coverage: ## print the share of each folder's lines that the tests run, and the files with the smallest share
	@scripts/setup check
	@$(MAKE) --no-print-directory $(JOBS) NVCC= CFLAGS='-O1 -g --coverage' B=$(B)/coverage \
		$(B)/coverage/framed $(B)/coverage/framed-bench tests
	@find $(B)/coverage -name '*.gcda' -delete
	-@B=$(B)/coverage SAN=coverage CASES=300 tests/run tests/kernels tests/config tests/daemon tests/client tests/fuzz tests/e2e
	@tests/coverage.py $(B)/coverage

# Checked before anything is installed or built.
boxes_need_root = [ "$$(id -u)" = 0 ] || { echo "$@: its boxes are network namespaces, which need root: sudo make $@" >&2; exit 1; }

.PHONY: cluster-demo
cluster-demo: ## three boxes of a cluster on this machine, one of which loses power: takes 35 s, needs root
	@$(boxes_need_root)
	@scripts/setup check
	@$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/libframed.so.1
	@B=$(B) FRAMED=$(B)/framed tests/cluster/check.py --demo

# FRAMED_OTHER=FILE: a framed of another version, in place of the one built for the test.
CLUSTER_TEST = B=$(B) FRAMED=$(B)/framed $(if $(FRAMED_OTHER),FRAMED_OTHER=$(FRAMED_OTHER)) tests/cluster/check.py
AWAY ?= 3600
define build_cluster_test
@$(boxes_need_root)
@scripts/setup check
@$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/libframed.so.1 $(B)/framed-other-version
endef
.PHONY: check-cluster torture-cluster cluster-away
check-cluster: ## three daemons, three members of etcd, cables and power pulled: takes five minutes, needs root
	$(build_cluster_test)
	@$(CLUSTER_TEST)

torture-cluster: ## a hundred random faults of a cluster: takes ten minutes, needs root (SEED=7)
	$(build_cluster_test)
	@$(CLUSTER_TEST) --only none --random 100 $(if $(SEED),--seed $(SEED))

cluster-away: ## a cluster without etcd for AWAY seconds (3600), once stopping and once keeping its cameras: needs root
	$(build_cluster_test)
	@$(CLUSTER_TEST) --away $(AWAY) --random 0 --alone stop & stop=$$!; \
		$(CLUSTER_TEST) --away $(AWAY) --random 0 --alone keep; keep=$$?; wait $$stop && exit $$keep

.PHONY: check-edit
check-edit: ## a thousand cameras added and removed by HTTP beside ten others, with kills in between: takes two minutes (FRAMED_EDITS=1000 FRAMED_KILLS=60)
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed
	@FRAMED=$(B)/framed SAN=$(SAN) tests/torture/edits.py

# Cameras that fail for a long time, a thousand reloads, MUTATIONS of a clip of each codec under the sanitizers,
# and each call of a running framed refused once.
MUTATIONS ?= 1000
SOAK_SECONDS ?= 600
torture: ## an hour of the faults that make check tries in seconds (MUTATIONS=5000 SEED=7 SOAK_SECONDS=3600)
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed $(B)/faults/nth.so
	@set -e; for t in neighbours reconnects reload soak; do FRAMED=$(B)/framed SAN=$(SAN) \
		FRAMED_SOAK_SECONDS=$(SOAK_SECONDS) tests/torture/$$t.py; done
	@$(MAKE) --no-print-directory SAN=address,undefined B=$(B)/torture $(B)/torture/tests/daemon/codec/mutations
	MUTATIONS=$(MUTATIONS) $(if $(SEED),SEED=$(SEED)) ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(B)/torture/tests/daemon/codec/mutations
	FRAMED=$(B)/framed FRAMED_FAULTS_ALL=1 /usr/bin/python3 tests/e2e/test_refusals.py
