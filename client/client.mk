# libframed, what programs read frames with. It wants libc alone, and loads CUDA's driver where frames are on a GPU.
CLIENT_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard client/*.c))
LIBDIR ?= $(PREFIX)/lib
NO_UNDEFINED := -Wl,-z,defs
ifneq ($(SAN),)
NO_UNDEFINED :=
endif

$(B)/client/%.o: client/%.c
	$(call compile,$(CC) $(CPPFLAGS) $(CFLAGS) -std=c11 -fPIC -fvisibility=hidden)

$(B)/libframed.so.1: client/libframed.map $(CLIENT_OBJ)
	@echo "  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script,$< $(NO_UNDEFINED) \
		-o $@ $(CLIENT_OBJ)

# One object, so that what is not for programs has no name outside it.
$(B)/libframed.a: $(CLIENT_OBJ)
	@echo "  $@"
	$(Q)$(CROSS)ld -r -o $(@:.a=.o) $^ && $(CROSS)objcopy --localize-hidden $(@:.a=.o)
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
