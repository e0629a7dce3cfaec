# make dist, deb and wheel, into build/dist. All start from what is committed: a package is made of a
# revision, not of what happens to lie about.

DIST	:= $(O)/dist
SOURCE	:= $(DIST)/gputrace-$(VERSION).tar.gz
DEPS	+= debhelper dpkg-dev fakeroot lintian

.PHONY: dist deb wheel
dist: $(SOURCE)

# The same revision gives the same bytes: git archive takes the time of the commit, gzip -n none.
$(SOURCE): FORCE
	$(Q)mkdir -p $(@D)
	$(Q)git archive --format=tar --prefix=gputrace-$(VERSION)/ HEAD | gzip -9n >$@.new && mv $@.new $@
	$(call say,DIST,$@)

deb: $(SOURCE)
	$(Q).packaging/deb $(SOURCE) $(VERSION) $(DIST)

wheel: $(SOURCE)
	$(Q).packaging/wheel $(SOURCE) $(VERSION) $(DIST)
