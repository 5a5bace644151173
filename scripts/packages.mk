# Files installed beside the program, and packages. The manual pages take their facts from the program and the sources.
MANUALS := $(patsubst scripts/man/%.md,$(B)/man/%,$(wildcard scripts/man/*.md))
INSTALLED := $(B)/systemd/framed.service $(B)/systemd/framed@.service $(B)/systemd/gpu.conf $(B)/systemd/groups.conf $(B)/systemd/decoders.conf
UNITS ?= $(PREFIX)/lib/systemd/system
ZSH ?= $(PREFIX)/share/zsh/site-functions

$(B)/man/%: scripts/man/%.md scripts/manual daemon/wire.h client/framed.h $(B)/framed $(B)/framed-bench
	@mkdir -p $(@D)
	$(Q)$(if $(CROSS),RUN=qemu-$(MACHINE)) scripts/manual $(B)/framed $< $(VERSION) > $@

# One of several instances: its own configuration and folders, otherwise like framed.service.
$(B)/systemd/framed@.service: systemd/framed.service
	@mkdir -p $(@D)
	$(Q)sed -E -e 's,^Description=.*,& (%i),' -e 's,/etc/framed/framed\.(yaml|d),/etc/framed/%i.\1,' \
		-e 's,^(Runtime|State)Directory=framed$$,&-%i,' -e 's,/usr/,$(PREFIX)/,' $< > $@

$(B)/systemd/%: systemd/%
	@mkdir -p $(@D)
	$(Q)sed 's,/usr/,$(PREFIX)/,' $< > $@

# A package is not limited to this machine's GPUs unless CUDA_ARCHS is given.
PACKAGE_ARCHS = $(if $(filter command environment,$(origin CUDA_ARCHS)),$(CUDA_ARCHS),package)

.PHONY: manuals units deb check-deb check-setup check-trixie deb-arm64 container repo bundle
manuals: $(MANUALS) ## make the manual pages, in build/man
units: $(INSTALLED) ## make the units for systemd, in build/systemd

deb: ## make a Debian package, in build/deb
	@scripts/setup deb
	@NVCC='$(NVCC)' CUDA_ARCHS='$(PACKAGE_ARCHS)' scripts/deb $(B)/deb $(VERSION)

check-deb: deb ## test the package on a bare Debian in a container: takes minutes, needs root
	@scripts/setup check-deb
	@scripts/check_deb $(B)/deb/framed_$(VERSION)_*.deb $(B)/bookworm

check-setup: ## test on a bare Debian in a container that the packages for the tests start no service: takes minutes, needs root
	@scripts/setup check-deb
	@scripts/check_setup $(B)/bookworm

SUITE ?= trixie
check-trixie: ## run make demo and make check on a bare Debian 13 in a folder (SUITE=bookworm: another): takes half an hour, needs root
	@scripts/setup check-suite
	@scripts/check_suite $(SUITE) $(B)/$(SUITE)-suite

deb-arm64: ## cross-build the packages for arm64, in build/deb-arm64, and test them in qemu: takes minutes, needs root
	@scripts/setup deb-arm64
	@scripts/deb_arm64 $(B)/deb-arm64 $(VERSION)

container: deb ## make an image with the package by podman or docker, and test it (BASE=IMAGE)
	@scripts/container $(B)/deb/framed_$(VERSION)_*.deb $(VERSION)

repo: deb ## make a folder from which apt installs the packages, in build/repo (KEY=NAME signs it with gpg)
	@scripts/repo $(B)/repo $(wildcard $(B)/deb-arm64/*.deb) $(B)/deb/*.deb

bundle: ## make a folder that runs from anywhere on a box without packages
	@scripts/setup bundle
	@$(MAKE) --no-print-directory B=$(B)/package CUDA_ARCHS='$(PACKAGE_ARCHS)' $(B)/package/framed $(B)/package/framed-bench
	scripts/bundle $(B)/package/framed bundle
