# framed-bench, which measures a box with the framed beside it, and benches for single questions.
BENCH_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out %/main.c,$(wildcard tests/bench/*.c)))
ifneq ($(NVCC),)
BENCH_OBJ += $(patsubst %.cu,$(B)/%.cu.o,$(wildcard tests/bench/cuda/*.cu))
endif

$(B)/framed-bench: $(B)/tests/bench/main.o $(BENCH_OBJ) $(DAEMON)
	$(link) $(DAEMON_LIBS)

$(B)/tests/bench/tests/%: $(B)/tests/bench/tests/%.o $(BENCH_OBJ) $(DAEMON)
	$(link) $(DAEMON_LIBS)

# --- the kernels beside libyuv, swscale and OpenCV: C++ only for OpenCV's header
CXX ?= c++
PEERS_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out %/workers.c,$(wildcard tests/bench/peers/*.c))) $(B)/tests/bench/peers/opencv.o

$(B)/tests/bench/peers/%.o: tests/bench/peers/%.cpp
	$(call compile,$(CXX) $(CPPFLAGS) -isystem /usr/include/opencv4 $(filter-out -std=%,$(CFLAGS)) -std=c++17)

$(B)/bench-peers: $(PEERS_OBJ) $(KERNELS)
	$(Q)$(CXX) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs libavformat libavcodec libswscale libavutil) \
		-lyuv -lopencv_imgproc -lopencv_core $(KERNELS_LIBS)

$(B)/bench-detect: $(B)/tests/bench/detect/main.o $(if $(NVCC),$(B)/tests/bench/detect/time_cuda.cu.o) $(KERNELS)
	$(link) $(KERNELS_LIBS)

$(B)/bench-motion-clip: $(B)/tests/bench/motion/motion_clip.o $(KERNELS)
	$(link) $(KERNELS_LIBS)

$(B)/bench-lut-cuda: $(B)/tests/bench/lut/time_cuda.cu.o $(KERNELS)
	$(link) $(KERNELS_LIBS)

$(B)/bench-fingerprint: $(B)/tests/bench/fingerprint/main.o $(if $(NVCC),$(B)/tests/bench/fingerprint/time_cuda.cu.o) $(KERNELS)
	$(link) $(KERNELS_LIBS)

STATISTICS_BENCH_OBJ := $(B)/tests/bench/statistics/main.o $(B)/tests/bench/statistics/opencv.o
$(B)/tests/bench/statistics/%.o: tests/bench/statistics/%.cpp
	$(call compile,$(CXX) $(CPPFLAGS) -isystem /usr/include/opencv4 $(filter-out -std=%,$(CFLAGS)) -std=c++17)

$(B)/bench-statistics: $(STATISTICS_BENCH_OBJ) $(KERNELS)
	$(Q)$(CXX) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lopencv_imgproc -lopencv_core $(KERNELS_LIBS)

$(B)/bench-analysis: $(B)/tests/bench/analysis/main.cu.o $(KERNELS)
	$(link) $(KERNELS_LIBS)

$(B)/bench-workers: $(B)/tests/bench/peers/workers.o $(KERNELS)
	$(link) $(KERNELS_LIBS)

# --- framed at a camera beside GStreamer and the ffmpeg program
LATENCY_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out %/gstreamer.c,$(wildcard tests/bench/latency/*.c)))

$(B)/bench-latency: $(LATENCY_OBJ) $(BENCH_OBJ) $(DAEMON)
	$(link) $(DAEMON_LIBS)

$(B)/tests/bench/latency/gstreamer.o: PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags gstreamer-app-1.0 gstreamer-video-1.0)
$(B)/bench-gstreamer: $(B)/tests/bench/latency/gstreamer.o $(B)/tests/bench/latency/picture_number.o
	$(link) $(shell $(PKG_CONFIG) --libs gstreamer-app-1.0 gstreamer-video-1.0)

# --- NVDEC without libavcodec
$(B)/bench-cuvid: $(B)/tests/bench/cuvid/main.o $(B)/tests/bench/clip_units.o
	$(link) $(shell $(PKG_CONFIG) --libs libavformat libavcodec libavutil) -ldl

# --- crops of a client's results, with a client outside the daemon
$(B)/bench-crops: $(B)/tests/bench/crops/main.o $(B)/libframed.a
	$(link) -lm -ldl

# --- nodes of a cluster without cameras
$(B)/bench-cluster: $(B)/tests/bench/cluster/main.o $(DAEMON)
	$(link) $(DAEMON_LIBS)

# Real footage, which is not part of these sources.
FOOTAGE ?= ../shared/media/car-detection.mp4
MEDIA ?= $(dir $(FOOTAGE))

.PHONY: bench-analysis bench-client bench-clips bench-cluster bench-core bench-crops bench-cuvid bench-detect bench-faults bench-faults-ffmpeg bench-fingerprint bench-gate bench-latency bench-lut-cuda bench-memory bench-motion bench-newcomer bench-page bench-peers bench-polls bench-rates bench-record bench-results bench-scrape bench-sockets bench-statistics bench-trilinear bench-wall bench-workers
bench-clips: ## make the clips of bench-latency, bench-rates and bench-record from real footage (FOOTAGE=FILE)
	@test -r '$(FOOTAGE)' || { echo "no $(FOOTAGE): FOOTAGE=FILE is wanted, some 15 s of real video" >&2; exit 1; }
	@scripts/setup bench
	@tests/bench/latency/clips '$(FOOTAGE)' $(B)/clips

bench-peers: ## the kernels beside libyuv, swscale, OpenCV and memory (CLIP=FILE PEERS_ARGS="--cpu 1 --only bgra")
	@scripts/setup peers
	@$(MAKE) --no-print-directory $(B)/bench-peers
	@$(B)/bench-peers $(if $(CLIP),--clip '$(CLIP)') $(PEERS_ARGS)

bench-lut-cuda: $(B)/bench-lut-cuda ## colour look-up tables on a GPU, beside copies on it (FRAMES=FILE.rgb, 2 of 1920x1080)
	@$(B)/bench-lut-cuda $(FRAMES)

bench-statistics: ## statistics of a 1080p luma on one core, beside OpenCV and ffmpeg (FOOTAGE=FILE)
	@test -r '$(FOOTAGE)' || { echo "no $(FOOTAGE): FOOTAGE=FILE is wanted, some real video" >&2; exit 1; }
	@scripts/setup peers bench
	@$(MAKE) --no-print-directory $(B)/bench-statistics
	@ffmpeg -y -v error -stream_loop -1 -i '$(FOOTAGE)' -frames:v 64 -vf scale=1920:1080 -pix_fmt yuv420p \
		-f rawvideo $(B)/statistics.yuv
	@$(B)/bench-statistics $(B)/statistics.yuv

bench-analysis: $(B)/bench-analysis ## statistics and motion on a GPU, beside copies on it (RUNS=101)
	@$(B)/bench-analysis $(RUNS)

bench-workers: $(B)/bench-workers ## a frame on one worker of the cpu backend, and on WORKERS or all
	@$(B)/bench-workers $(WORKERS)

bench-core: ## the whole daemon on one core, beside decoding alone and ffmpeg (CLIP=FILE CORE_ARGS=...)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@scripts/bench_core.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --framed $(B)/framed $(CORE_ARGS)

bench-faults: ## faults of a camera: seconds to the next good picture, and losses: takes minutes (FAULTS="fin reset")
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed
	@FRAMED=$(B)/framed FRAMED_FAULTS="$(FAULTS)" tests/torture/faults_table.py

bench-faults-ffmpeg: ## the same faults for framed, ffmpeg alone and ffmpeg with a supervisor: takes minutes (FAULTS="fin reset")
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed
	@FRAMED=$(B)/framed FRAMED_FAULTS="$(FAULTS)" tests/torture/beside_ffmpeg.py

# Tensors of keyframes only: a small box can run many cameras, and decoding does not hide the cost of recording.
bench-record: bench-clips ## CPU time of 1080p cameras with and without recording of their packets (FOOTAGE=FILE RECORD_ARGS="--cameras 20 --runs 5")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@$(B)/framed-bench --backend cpu --clip $(B)/clips/h264-1080p.mp4 --cameras 20 --live --rtsp tcp --runs 5 --seconds 20 \
		--try fps=1 --try pictures=keyframes --try copy=off,on $(RECORD_ARGS)

bench-rates: bench-clips ## CPU time of cameras at fps 1, with all pictures decoded and with only keyframes (FOOTAGE=FILE RATES_ARGS="--runs 5")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@$(B)/framed-bench --backend cpu --clip $(B)/clips/h264-1080p.mp4 --cameras 4 --live --rtsp tcp --runs 3 --seconds 10 \
		--try fps=1 --try pictures=all,auto $(RATES_ARGS)

bench-crops: ## time from a client's results to their crops, with 4 cameras (CLIP=FILE CROPS_ARGS="--cameras 8 --fps 25")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/bench-crops
	@scripts/bench_crops.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --build $(B) $(CROPS_ARGS)

bench-page: ## the page's size, the cost of viewing 20 cameras and the delay of pictures, beside the limits (FOOTAGE=FILE PAGE_ARGS="--rounds 9")
	@test -r '$(FOOTAGE)' || { echo "no $(FOOTAGE): FOOTAGE=FILE is wanted, some 15 s of real video" >&2; exit 1; }
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_page.py '$(FOOTAGE)' --build $(B) $(PAGE_ARGS)

bench-polls: ## the loop's cost of a poll of 165 cameras, beside the limit: takes seven minutes (POLLS_ARGS="--settle 20")
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_polls.py --framed $(B)/framed $(POLLS_ARGS)

bench-cuvid: ## pictures/s of NVDEC without libavcodec, the limit of decoding on a GPU (CLIP=FILE CUVID_ARGS="1,7,14")
	@scripts/setup cuvid
	@$(MAKE) --no-print-directory $(B)/bench-cuvid
	@$(B)/bench-cuvid '$(or $(CLIP),$(error CLIP=FILE is wanted))' $(or $(CUVID_ARGS),1,7,14,28)

bench-wall: ## the cost of analyses and of a page's wall with 165 live cameras on a GPU, beside the limits (CLIP=FILE WALL_ARGS="--cameras 20")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@scripts/bench_wall.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --build $(B) $(WALL_ARGS)

bench-detect: ## detection beside torch and torchvision on one core (DETECT_ARGS=--cuda: also on a GPU)
	@$(MAKE) --no-print-directory $(B)/bench-detect $(B)/libframed.so.1
	@B=$(B) PYTHONPATH=client LD_LIBRARY_PATH=$(B):$$LD_LIBRARY_PATH tests/bench/detect/beside_torch.py $(DETECT_ARGS)

bench-fingerprint: ## the cost of fingerprints, and distances of near-duplicates and of distinct pictures (MEDIA=FOLDER)
	@scripts/setup motion
	@$(MAKE) --no-print-directory $(B)/bench-fingerprint
	@$(B)/bench-fingerprint time
	@OPENCV_LOG_LEVEL=off tests/bench/fingerprint/distances.py --program $(B)/bench-fingerprint $(wildcard $(MEDIA)/*.mp4)

bench-motion: ## motion beside OpenCV's recipes: labelled events and false alarms: takes minutes (MEDIA=FOLDER MOTION_ARGS="--least 0.05")
	@scripts/setup motion
	@$(MAKE) --no-print-directory $(B)/bench-motion-clip
	@tests/bench/motion/beside_opencv.py $(B)/bench-motion-clip '$(MEDIA)' $(MOTION_ARGS)

bench-gate: ## the share of a day's pictures that a detector behind `gate: motion` gets: takes minutes (MEDIA=FOLDER GATE_ARGS="--seconds 3600")
	@scripts/setup motion
	@$(MAKE) --no-print-directory $(B)/bench-motion-clip $(B)/framed $(B)/libframed.so.1
	@PYTHONPATH=client LD_LIBRARY_PATH=$(B):$$LD_LIBRARY_PATH tests/bench/motion/gate_day.py $(B)/bench-motion-clip '$(MEDIA)' \
		--framed $(B)/framed $(GATE_ARGS)

bench-trilinear: ## framedio.trilinear beside torch's grid_sample on one core (TRILINEAR_ARGS=--cuda: on a GPU)
	@$(MAKE) --no-print-directory $(B)/libframed.so.1
	@PYTHONPATH=client LD_LIBRARY_PATH=$(B):$$LD_LIBRARY_PATH tests/bench/trilinear/beside_torch.py $(TRILINEAR_ARGS)

bench-latency: bench-clips ## time from sending to reading a picture, and to the first, beside GStreamer and ffmpeg (FOOTAGE=FILE LATENCY_ARGS="--only 1080p")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/bench-latency $(B)/bench-gstreamer
	@$(B)/bench-latency --clips $(B)/clips --framed $(B)/framed --gstreamer $(B)/bench-gstreamer \
		--ffmpeg $$(command -v ffmpeg) $(LATENCY_ARGS)

bench-results: ## the loop's cost of results that clients send back, and the time from a result to its line (RESULTS_ARGS="--cameras 165 --fps 25")
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_results.py --framed $(B)/framed $(RESULTS_ARGS)

bench-scrape: ## the cost of scraping the counters under full load (CLIP=FILE SCRAPE_ARGS=...)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_scrape.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --framed $(B)/framed $(SCRAPE_ARGS)

bench-newcomer: ## time from the start of framed to the first tensor of a camera that the page finds: 60 s at most (DEB=FILE installs it, as root)
	@scripts/setup check $(if $(DEB),check-deb)
	@$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/libframed.so.1
	@scripts/bench_newcomer.py --framed $(B)/framed $(if $(DEB),--deb $(DEB))

bench-cluster: ## 1,000 cameras without pictures on 20 nodes with a real etcd: time until they run, and its cost: takes two minutes (CLUSTER_ARGS="--members 3")
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed $(B)/bench-cluster $(B)/tests/daemon/cluster/plan $(B)/tests/daemon/cluster/site
	@tests/bench/cluster/at_scale.py $(B)/bench-cluster $(B)/framed $(CLUSTER_ARGS)
	@$(B)/tests/daemon/cluster/plan && $(B)/tests/daemon/cluster/site

bench-client: ## a program's cost of reading frames, by libframed and by framedio, also from 165 rings at once (SECONDS=8)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed $(B)/libframed.so.1 $(B)/tests/e2e/client_frames
	@scripts/bench_client.py --build $(B) $(if $(SECONDS),--seconds $(SECONDS))

bench-sockets: ## ages of frames after a client stalled, and rates, over unix and tcp (SOCKETS_ARGS="--framed OTHER")
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_sockets.py --framed $(B)/framed $(SOCKETS_ARGS)

bench-memory: ## the memory that `framed check` plans beside the memory in use (MEMORY_ARGS: see scripts/bench_memory.py)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_memory.py --framed $(B)/framed --clips $(B)/memory $(MEMORY_ARGS)
