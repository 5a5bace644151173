# libframed, with which programs read frames. It requires only libc, and loads CUDA's driver if frames or outputs are on a
# GPU. It contains the kernels for detection and trilinear interpolation.
CLIENT_KERNELS := $(filter kernels/detect_% kernels/cpu/detect_% kernels/trilinear.c,$(KERNELS_SRC))
CLIENT_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard client/*.c)) $(CLIENT_KERNELS:%.c=$(B)/%.o)
LIBDIR ?= $(PREFIX)/lib
NO_UNDEFINED := -Wl,-z,defs
ifneq ($(SAN),)
NO_UNDEFINED :=
endif
SHARED := -fPIC -fvisibility=hidden
ifneq ($(NVCC),)
CLIENT_OBJ += $(patsubst %.cu,$(B)/%.cu.o,$(wildcard client/*.cu kernels/cuda/detect*.cu kernels/cuda/trilinear.cu))
CLIENT_LIBS := $(CUDART)
endif

# Code of a shared library must be position-independent. The daemon can link the same objects.
$(CLIENT_OBJ): override CFLAGS += $(SHARED)
$(CLIENT_OBJ): NVCCFLAGS += $(SHARED:%=-Xcompiler %)

$(B)/client/%.o: client/%.c
	$(call compile,$(CC) $(CPPFLAGS) $(CFLAGS) -std=c11)

$(B)/libframed.so.1: client/libframed.map $(CLIENT_OBJ)
	@echo "  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script,$< $(NO_UNDEFINED) \
		-o $@ $(CLIENT_OBJ) $(CLIENT_LIBS)

# One object, so that internal names are not visible outside. Its section groups are dissolved: the linker keeps only one
# of several groups with the same name, and a program with its own CUDA runtime has groups of these names.
$(B)/libframed.a: $(CLIENT_OBJ)
	@echo "  $@"
	$(Q)$(CROSS)ld -r --force-group-allocation -o $(@:.a=.o) $^ $(CLIENT_LIBS) && $(CROSS)objcopy -w --keep-global-symbol='framed_*' $(@:.a=.o)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(@:.a=.o)

.PHONY: client install-client
client: $(B)/libframed.so.1 $(B)/libframed.a ## build libframed, with which programs read frames

install-client: client ## install libframed with its headers (PREFIX=/usr LIBDIR=FOLDER DESTDIR=FOLDER)
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(B)/libframed.so.1 $(B)/libframed.a
	ln -sf libframed.so.1 $(DESTDIR)$(LIBDIR)/libframed.so
	install -D -m 644 daemon/wire.h $(DESTDIR)$(PREFIX)/include/framed/wire.h
	sed 's,"daemon/wire.h",<framed/wire.h>,' client/framed.h > $(DESTDIR)$(PREFIX)/include/framed.h
	chmod 644 $(DESTDIR)$(PREFIX)/include/framed.h
	mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' -e 's,@VERSION@,$(VERSION),' client/framed.pc.in \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/framed.pc
	if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then PATH=$$PATH:/sbin ldconfig; fi
