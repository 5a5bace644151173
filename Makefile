# framed: `make` builds build/framed, `make demo` is the main job, `make check` runs every test, `make help` lists the rest.
# Tests, benches and packages are in fragments beside their sources. Variables of all targets:
#   SAN=address,undefined | thread    build and test with sanitizers, in a separate folder
#   CC=clang                          another compiler
#   CROSS=aarch64-linux-gnu-          build for another machine, with Debian's packages of its architecture
#   NVCC=                             build without CUDA even where nvcc is installed
#   CUDA_ARCHS="90"                   build for these compute capabilities instead of this machine's (`package`: all of a package's)
#   SCALAR=1                          build without the kernels for AVX2 and AVX-512
#   B=FOLDER                          build in this folder
#   PARTS=sanitized                   check: run the tests of single parts under ASan and UBSan instead of plain
#   V=1                               show the commands
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := 0.2.0
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
CFLAGS ?= -O2 -g
PIXEL_CFLAGS := $(if $(filter file,$(origin CFLAGS)),-O3)
override CFLAGS += -std=c17 $(WARN) -fno-strict-aliasing -ffp-contract=off -pthread -MMD -MP
ifneq ($(SAN),)
override CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
override LDFLAGS += -fsanitize=$(SAN)
ifneq ($(filter thread,$(SAN)),)
# A fence against writers in other processes, which the sanitizer does not watch, is correct. Only gcc has this warning.
override CFLAGS += -Wno-unknown-warning-option -Wno-tsan
endif
endif

# Recipes: $(call compile,COMPILER AND FLAGS) compiles one source, $(link) LIBRARIES links all prerequisites to a program,
# $(archive) puts them into a thin archive.
define compile
@mkdir -p $(@D)
@echo "  $@"
$(Q)$(1) -c -o $@ $<
endef
link = $(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
archive = $(Q)rm -f $@ && $(CROSS)ar rcsT $@ $^

include kernels/kernels.mk

# --- config and daemon: Debian's libraries, looked up only when needed
CONFIG_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard config/*.c))
DAEMON_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out daemon/main.c,$(wildcard daemon/*.c daemon/*/*.c)))
CONFIG := $(B)/libconfig.a $(KERNELS)
DAEMON := $(B)/libdaemon.a $(CONFIG)
PACKAGES := libavformat libavcodec libswscale libavutil libuv yaml-0.1 jansson libmicrohttpd libcurl libmosquitto libxml-2.0 libjpeg libssl libcrypto libsystemd
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
DAEMON_LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES)) $(KERNELS_LIBS)
CONFIG_LIBS = $(shell $(PKG_CONFIG) --libs yaml-0.1) $(KERNELS_LIBS)

.PHONY: all check clean demo help install
all: $(B)/framed $(B)/framed-bench ## build framed and framed-bench, which measures a box

$(B)/libconfig.a: $(CONFIG_OBJ)
	$(archive)

$(B)/libdaemon.a: $(DAEMON_OBJ)
	$(archive)

$(B)/framed: $(B)/daemon/main.o $(DAEMON)
	$(link) $(DAEMON_LIBS)
ifeq ($(NVCC),)
	@echo "framed: built without CUDA: $(if $(CROSS),cross-built,no nvcc found (12 or later adds the cuda backend))"
endif

$(B)/%.o: %.c
	$(call compile,$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS))

# The page's files as routes.c embeds and sends them: without comments and indentation (no text that spans lines has any),
# compressed, and each with a hash for browsers' caches.
PAGE := daemon/service/page
$(B)/page/%.gz: $(PAGE)/%
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)sed -E '/\*\/ *[^ ]/!{ /^( *(\/\*\*|\*\/|\/\/)| +\*( |$$))/d }; s/\/\*\* @[^*]*\*\/ ?//g; s/^ +//' $< | gzip -9nc > $@
	$(Q)sha256sum $@ | sed -E 's/^(.{16}).*/"\1"/' | tr -d '\n' > $(@:.gz=.tag)

$(B)/daemon/service/routes.o: override CFLAGS += -Wa,-I$(B)/page
$(B)/daemon/service/routes.o: daemon/service/openapi.json $(patsubst $(PAGE)/%,$(B)/page/%.gz,$(wildcard $(PAGE)/*))

$(B)/daemon/cli/verify_clips.o: $(wildcard daemon/cli/clips/*)

include client/client.mk tests/bench/bench.mk tests/fuzz/fuzz.mk tests/tests.mk scripts/packages.mk

# --- targets for users. Set-up runs first and in a separate make, because there may be no compiler before it. Without -j
# there is one job for each processor.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

demo: ## cameras in, tensors, boxes and a .y4m file out, with an account of every frame (URL=rtsp://... DEMO_SECONDS=60)
	@scripts/setup demo
	@scripts/setup detector & \
	$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/libframed.so.1; made=$$?; \
	wait $$! || echo "demo: it goes on without a detector"; exit $$made
	@B=$(B) scripts/demo

check: ## build and run every test
	@scripts/setup check
	@$(MAKE) --no-print-directory $(JOBS) $(B)/framed $(B)/framed-bench $(if $(PARTS),whole-tests,tests) $(if $(SAN),,check-aarch64-build)
	@$(if $(PARTS),$(build_sanitized))
	@B=$(B) FRAMED=$(B)/framed SAN=$(SAN) $(if $(PARTS),PARTS=$(SANITIZED)) tests/run

install: $(B)/framed $(B)/framed-bench manuals units install-client ## install everything, with the service and manual pages (PREFIX=/usr DESTDIR=FOLDER)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(B)/framed $(B)/framed-bench
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/framed/examples config/framed.yaml
	install -D -m 644 -t $(DESTDIR)$(UNITS) $(filter %.service,$(INSTALLED))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/framed $(filter %.conf,$(INSTALLED))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/framed/monitoring scripts/monitoring/framed.rules.yml \
		scripts/monitoring/framed-dashboard.json
	install -D -m 644 systemd/framed.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/framed.conf
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(filter %.1,$(MANUALS))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man3 $(filter %.3,$(MANUALS))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(filter %.5,$(MANUALS))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man7 $(filter %.7,$(MANUALS))
	install -D -m 644 scripts/completion/framed.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/framed
	ln -sf framed $(DESTDIR)$(PREFIX)/share/bash-completion/completions/framed-bench
	install -D -m 644 -t $(DESTDIR)$(ZSH) scripts/completion/_framed

clean: ## remove build/ and bundle/
	rm -rf build bundle

help: ## list every target, and the variables of all targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(filter Makefile %.mk,$(MAKEFILE_LIST)) | \
		awk -F '\t' '{ printf "  %-20s %s\n", $$1, $$2 }'
	@echo
	@sed -n 's/^#   /  /p' Makefile

-include $(shell find $(B) '(' -path '$(B)/deb*' -o -path $(B)/bookworm -o -path '$(B)/*-suite' ')' -prune -o -name '*.d' -type f -print 2>/dev/null)
