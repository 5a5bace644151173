# Fuzzing. What it finds worth keeping goes to the build's own corpus first. make check gives each part the files of its
# corpus once, by a main in place of libFuzzer's.
FUZZ_SECONDS ?= 60
FUZZERS := client config control cube drop_ins edit etcd h264 h265 http jpeg onvif plan results ring rtcp rtp rtsp sdp slices

# What they drive, and of the kernels no more than that needs: the rest takes minutes to build with sanitizers.
FUZZED_CONFIG_OBJ := $(CONFIG_OBJ) $(patsubst %,$(B)/kernels/%.o,format image lut processors)
FUZZED_OBJ := $(FUZZED_CONFIG_OBJ) $(filter $(B)/daemon/base/% $(B)/daemon/output/%,$(DAEMON_OBJ)) \
	$(patsubst %,$(B)/daemon/%.o,bitstream/hevc_headers bitstream/nal decode/frame input/libav_log input/retry scene/alarms scene/gate service/control service/http service/http_exchange service/http_guard)
FUZZED_BY := $(FUZZERS:%=$(B)/fuzz_%) $(FUZZERS:%=$(B)/tests/fuzz/fuzz_%)

$(filter %_control %_http,$(FUZZED_BY)): $(B)/tests/fuzz/dialogue.o
$(filter %_client,$(FUZZED_BY)): $(B)/libframed.a
$(filter %_ring,$(FUZZED_BY)): $(B)/tests/fuzz/ring_model.o
$(filter %_slices,$(FUZZED_BY)): $(patsubst %,$(B)/daemon/%.o,bitstream/hevc_headers bitstream/nal $(addprefix decode/,hevc_cabac hevc_residual hevc_slice slice_check))
$(filter %_rtcp,$(FUZZED_BY)): $(B)/daemon/rtsp/rtcp.o
$(filter %_rtp,$(FUZZED_BY)): $(patsubst %,$(B)/daemon/rtsp/rtp_%.o,packet receiver source)
$(filter %_rtsp,$(FUZZED_BY)): $(patsubst %,$(B)/daemon/rtsp/rtsp_%.o,auth message url)
$(filter %_sdp,$(FUZZED_BY)): $(B)/daemon/rtsp/sdp.o
$(filter %_onvif,$(FUZZED_BY)): $(B)/config/url.o $(B)/daemon/base/clock.o $(patsubst %,$(B)/daemon/onvif/%.o,onvif_camera soap ws_discovery xml)
$(filter %_plan,$(FUZZED_BY)): $(patsubst %,$(B)/daemon/cluster/%.o,document_fields documents plan plan_json)
$(filter %_h264 %_h265 %_jpeg,$(FUZZED_BY)): $(B)/tests/fuzz/rtp_payloads.o $(patsubst %,$(B)/daemon/bitstream/%.o,h264_headers nal) \
	$(patsubst %,$(B)/daemon/rtsp/%.o,assembly depacketize_h264 depacketize_h265 depacketize_jpeg depacketizer jpeg_header \
	nal_assembly parameter_sets picture_end)
$(filter-out %_config %_drop_ins %_edit %_slices,$(FUZZED_BY)): $(B)/tests/fuzz/turns.o
$(filter-out %_client %_config %_cube %_drop_ins %_edit %_h264 %_h265 %_jpeg %_onvif %_rtsp %_sdp,$(FUZZED_BY)): $(FUZZED_OBJ)
$(filter %_etcd,$(FUZZED_BY)): $(B)/daemon/cluster/etcd_json.o
$(filter %_edit,$(FUZZED_BY)): $(B)/daemon/service/camera_body.o $(B)/daemon/supervisor/edit.o
$(filter %_config %_cube %_drop_ins %_edit,$(FUZZED_BY)): $(FUZZED_CONFIG_OBJ)

$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o
	$(link) -fsanitize=fuzzer $(DAEMON_LIBS)

$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o
	$(link) $(DAEMON_LIBS)

.PHONY: fuzz
fuzz: ## try damaged and invented input on each part that reads it (FUZZ_SECONDS=600 each)
	@scripts/setup fuzz
	@$(MAKE) --no-print-directory NVCC= CC=clang SAN=address,undefined CFLAGS='-g -O1 -fsanitize=fuzzer-no-link' \
		B=$(B)/fuzz $(FUZZERS:%=$(B)/fuzz/fuzz_%)
	@set -e; for f in $(FUZZERS); do \
		mkdir -p $(B)/corpus/$$f; \
		echo "fuzz_$$f"; \
		$(B)/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=60 -max_len=4096 \
			-artifact_prefix=$(B)/fuzz/ $(B)/corpus/$$f tests/fuzz/$$f; \
	done
