# Fuzzing. New inputs go first to a corpus in the build folder. make check runs each part once on the files of its corpus,
# with a main in place of libFuzzer's.
FUZZ_SECONDS ?= 60
FUZZERS := client config control cube drop_ins edit etcd h264 h265 http jpeg onvif plan results ring rtcp rtp rtsp sdp

FUZZED_BY := $(FUZZERS:%=$(B)/fuzz_%) $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%)
$(filter %_control %_http,$(FUZZED_BY)): $(B)/tests/fuzz/dialogue.o
$(filter %_client,$(FUZZED_BY)): $(B)/libframed.a
$(filter %_ring,$(FUZZED_BY)): $(B)/tests/fuzz/ring_model.o
$(filter %_h264 %_h265 %_jpeg,$(FUZZED_BY)): $(B)/tests/fuzz/rtp_payloads.o
$(filter-out %_config %_drop_ins %_edit,$(FUZZED_BY)): $(B)/tests/fuzz/turns.o
$(FUZZED_BY): $(DAEMON)

$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o
	$(link) -fsanitize=fuzzer $(DAEMON_LIBS)

$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o
	$(link) $(DAEMON_LIBS)

.PHONY: fuzz
fuzz: ## fuzz each part that reads input, with damaged and invented input (FUZZ_SECONDS=600 each)
	@scripts/setup fuzz
	@$(MAKE) --no-print-directory NVCC= CC=clang SAN=address,undefined CFLAGS='-g -O1 -fsanitize=fuzzer-no-link' \
		B=$(B)/fuzz $(FUZZERS:%=$(B)/fuzz/fuzz_%)
	@set -e; for f in $(FUZZERS); do \
		mkdir -p $(B)/corpus/$$f; \
		echo "fuzz_$$f"; \
		$(B)/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=60 -max_len=4096 \
			-artifact_prefix=$(B)/fuzz/ $(B)/corpus/$$f tests/fuzz/$$f; \
	done
