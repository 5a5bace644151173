# framed-bench, which measures a box with the framed beside it, and the benches of single questions.
BENCH_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out %/main.c,$(wildcard tests/bench/*.c)))
ifneq ($(NVCC),)
BENCH_OBJ += $(patsubst %.cu,$(B)/%.cu.o,$(wildcard tests/bench/cuda/*.cu))
endif

$(B)/framed-bench: $(B)/tests/bench/main.o $(BENCH_OBJ) $(DAEMON)
	$(link) $(DAEMON_LIBS)

$(B)/tests/bench/tests/%: $(B)/tests/bench/tests/%.o $(BENCH_OBJ) $(DAEMON)
	$(link) $(DAEMON_LIBS)

# --- the kernels beside libyuv, swscale and OpenCV: C++ for OpenCV's header alone
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

# --- crops of what a client finds, by a client outside the daemon
$(B)/bench-crops: $(B)/tests/bench/crops/main.o $(B)/libframed.a
	$(link) -lm -ldl

# --- nodes of a cluster without cameras
$(B)/bench-cluster: $(B)/tests/bench/cluster/main.o $(DAEMON)
	$(link) $(DAEMON_LIBS)

# Real footage, which is no part of these sources.
FOOTAGE ?= ../shared/media/car-detection.mp4
MEDIA ?= $(dir $(FOOTAGE))

.PHONY: bench-analysis bench-client bench-clips bench-cluster bench-core bench-crops bench-detect bench-faults bench-faults-ffmpeg bench-fingerprint bench-gate bench-latency bench-lut-cuda bench-memory bench-motion bench-newcomer bench-page bench-peers bench-polls bench-rates bench-record bench-results bench-scrape bench-sockets bench-statistics bench-trilinear bench-wall bench-workers
bench-clips: ## make the clips of bench-latency, bench-rates and bench-record from real footage (FOOTAGE=FILE)
	@test -r '$(FOOTAGE)' || { echo "no $(FOOTAGE): FOOTAGE=FILE is wanted, some 15 s of real video" >&2; exit 1; }
	@scripts/setup bench
	@tests/bench/latency/clips '$(FOOTAGE)' $(B)/clips

bench-peers: ## the kernels beside libyuv, swscale, OpenCV and memory (CLIP=FILE PEERS_ARGS="--cpu 1 --only bgra")
	@scripts/setup peers
	@$(MAKE) --no-print-directory $(B)/bench-peers
	@$(B)/bench-peers $(if $(CLIP),--clip '$(CLIP)') $(PEERS_ARGS)

bench-lut-cuda: $(B)/bench-lut-cuda ## colour look-up tables on a GPU, beside its copies (FRAMES=FILE.rgb, 2 of 1920x1080)
	@$(B)/bench-lut-cuda $(FRAMES)

bench-statistics: ## statistics of a 1080p luma on one core, beside OpenCV and ffmpeg (FOOTAGE=FILE)
	@test -r '$(FOOTAGE)' || { echo "no $(FOOTAGE): FOOTAGE=FILE is wanted, some real video" >&2; exit 1; }
	@scripts/setup peers bench
	@$(MAKE) --no-print-directory $(B)/bench-statistics
	@ffmpeg -y -v error -stream_loop -1 -i '$(FOOTAGE)' -frames:v 64 -vf scale=1920:1080 -pix_fmt yuv420p \
		-f rawvideo $(B)/statistics.yuv
	@$(B)/bench-statistics $(B)/statistics.yuv

bench-analysis: $(B)/bench-analysis ## statistics and motion on a GPU, beside its copies (RUNS=101)
	@$(B)/bench-analysis $(RUNS)

bench-workers: $(B)/bench-workers ## a frame over one worker of the cpu backend, and over WORKERS, or all
	@$(B)/bench-workers $(WORKERS)

bench-core: ## the whole daemon on one core, beside decoding alone and ffmpeg (CLIP=FILE CORE_ARGS=...)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@scripts/bench_core.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --framed $(B)/framed $(CORE_ARGS)

bench-faults: ## faults of a camera: seconds to the next good picture, and what was lost: minutes (FAULTS="fin reset")
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed
	@FRAMED=$(B)/framed FRAMED_FAULTS="$(FAULTS)" tests/torture/faults_table.py

bench-faults-ffmpeg: ## the same faults for framed, ffmpeg alone and ffmpeg with a supervisor: minutes (FAULTS="fin reset")
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed
	@FRAMED=$(B)/framed FRAMED_FAULTS="$(FAULTS)" tests/torture/beside_ffmpeg.py

# Tensors of keyframes alone, so that a small box bears many cameras and a recording is not lost in decoding.
bench-record: bench-clips ## CPU of 1080p cameras with their packets recorded, and without (FOOTAGE=FILE RECORD_ARGS="--cameras 20 --runs 5")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@$(B)/framed-bench --backend cpu --clip $(B)/clips/h264-1080p.mp4 --cameras 20 --live --rtsp tcp --runs 5 --seconds 20 \
		--try fps=1 --try pictures=keyframes --try copy=off,on $(RECORD_ARGS)

bench-rates: bench-clips ## CPU of cameras at fps 1, with all pictures decoded and with keyframes alone (FOOTAGE=FILE RATES_ARGS="--runs 5")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@$(B)/framed-bench --backend cpu --clip $(B)/clips/h264-1080p.mp4 --cameras 4 --live --rtsp tcp --runs 3 --seconds 10 \
		--try fps=1 --try pictures=all,auto $(RATES_ARGS)

bench-crops: ## from a client's results to the crops of them, of 4 cameras (CLIP=FILE CROPS_ARGS="--cameras 8 --fps 25")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/bench-crops
	@scripts/bench_crops.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --build $(B) $(CROPS_ARGS)

bench-page: ## the page's size, what looking at 20 cameras costs, and how soon pictures are there, beside the limits (FOOTAGE=FILE PAGE_ARGS="--rounds 9")
	@test -r '$(FOOTAGE)' || { echo "no $(FOOTAGE): FOOTAGE=FILE is wanted, some 15 s of real video" >&2; exit 1; }
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_page.py '$(FOOTAGE)' --build $(B) $(PAGE_ARGS)

bench-polls: ## what a poll of 165 cameras costs the loop, beside the limit: seven minutes (POLLS_ARGS="--settle 20")
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_polls.py --framed $(B)/framed $(POLLS_ARGS)

bench-wall: ## what analyses and a page's wall cost 165 live cameras on a GPU, beside the limits (CLIP=FILE WALL_ARGS="--cameras 20")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/framed-bench
	@scripts/bench_wall.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --build $(B) $(WALL_ARGS)

bench-detect: ## detection beside torch and torchvision on one core, with DETECT_ARGS=--cuda on a GPU, too
	@$(MAKE) --no-print-directory $(B)/bench-detect $(B)/libframed.so.1
	@B=$(B) PYTHONPATH=client LD_LIBRARY_PATH=$(B):$$LD_LIBRARY_PATH tests/bench/detect/beside_torch.py $(DETECT_ARGS)

bench-fingerprint: ## fingerprints: what they cost, and distances of near-duplicates and of distinct pictures (MEDIA=FOLDER)
	@scripts/setup motion
	@$(MAKE) --no-print-directory $(B)/bench-fingerprint
	@$(B)/bench-fingerprint time
	@OPENCV_LOG_LEVEL=off tests/bench/fingerprint/distances.py --program $(B)/bench-fingerprint $(wildcard $(MEDIA)/*.mp4)

bench-motion: ## motion beside OpenCV's recipes: labelled events and false alarms: minutes (MEDIA=FOLDER MOTION_ARGS="--least 0.05")
	@scripts/setup motion
	@$(MAKE) --no-print-directory $(B)/bench-motion-clip
	@tests/bench/motion/beside_opencv.py $(B)/bench-motion-clip '$(MEDIA)' $(MOTION_ARGS)

bench-gate: ## what a detector behind `gate: motion` gets of a day: minutes (MEDIA=FOLDER GATE_ARGS="--seconds 3600")
	@scripts/setup motion
	@$(MAKE) --no-print-directory $(B)/bench-motion-clip $(B)/framed $(B)/libframed.so.1
	@PYTHONPATH=client LD_LIBRARY_PATH=$(B):$$LD_LIBRARY_PATH tests/bench/motion/gate_day.py $(B)/bench-motion-clip '$(MEDIA)' \
		--framed $(B)/framed $(GATE_ARGS)

bench-trilinear: ## framedio.trilinear beside torch's grid_sample on one core, with TRILINEAR_ARGS=--cuda on a GPU
	@$(MAKE) --no-print-directory $(B)/libframed.so.1
	@PYTHONPATH=client LD_LIBRARY_PATH=$(B):$$LD_LIBRARY_PATH tests/bench/trilinear/beside_torch.py $(TRILINEAR_ARGS)

bench-latency: bench-clips ## sent to read and first picture, beside GStreamer and ffmpeg (FOOTAGE=FILE LATENCY_ARGS="--only 1080p")
	@$(MAKE) --no-print-directory $(B)/framed $(B)/bench-latency $(B)/bench-gstreamer
	@$(B)/bench-latency --clips $(B)/clips --framed $(B)/framed --gstreamer $(B)/bench-gstreamer \
		--ffmpeg $$(command -v ffmpeg) $(LATENCY_ARGS)

bench-results: ## what results that clients send back cost the daemon's loop, and from a result to its line (RESULTS_ARGS="--cameras 165 --fps 25")
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_results.py --framed $(B)/framed $(RESULTS_ARGS)

bench-scrape: ## what scraping the counters costs under full load (CLIP=FILE SCRAPE_ARGS=...)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_scrape.py '$(or $(CLIP),$(error CLIP=FILE is wanted))' --framed $(B)/framed $(SCRAPE_ARGS)

bench-newcomer: ## from the start of framed to the first tensor of a camera that the page finds: 60 s at most (DEB=FILE installs it, as root)
	@scripts/setup check $(if $(DEB),check-deb)
	@$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/libframed.so.1
	@scripts/bench_newcomer.py --framed $(B)/framed $(if $(DEB),--deb $(DEB))

bench-cluster: ## 1,000 cameras without pictures on 20 nodes beside a real etcd: when they run, what it takes: two minutes (CLUSTER_ARGS="--members 3")
	@scripts/setup check
	@$(MAKE) --no-print-directory $(B)/framed $(B)/bench-cluster $(B)/tests/daemon/cluster/plan $(B)/tests/daemon/cluster/site
	@tests/bench/cluster/at_scale.py $(B)/bench-cluster $(B)/framed $(CLUSTER_ARGS)
	@$(B)/tests/daemon/cluster/plan && $(B)/tests/daemon/cluster/site

bench-client: ## what reading frames costs a program, by libframed and by framedio, 165 rings at once, too (SECONDS=8)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed $(B)/libframed.so.1 $(B)/tests/e2e/client_frames
	@scripts/bench_client.py --build $(B) $(if $(SECONDS),--seconds $(SECONDS))

bench-sockets: ## ages of frames after a client stood still, and rates, over unix and tcp (SOCKETS_ARGS="--framed OTHER")
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_sockets.py --framed $(B)/framed $(SOCKETS_ARGS)

bench-memory: ## what `framed check` plans beside what is used (MEMORY_ARGS as scripts/bench_memory.py says)
	@scripts/setup demo
	@$(MAKE) --no-print-directory $(B)/framed
	@scripts/bench_memory.py --framed $(B)/framed --clips $(B)/memory $(MEMORY_ARGS)
