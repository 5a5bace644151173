// A disk that fails on request, for programs that are linked with disk.c, which wraps the C
// library's calls on files. Thread-safe, except disk_break.
//
// A framed that is linked with it can be controlled from outside: while the file that
// FRAMED_DISK_FULL names exists, no other file in its folder grows or is created; while the one
// that FRAMED_DISK_HANGS names exists, writes to the others wait.
#ifndef FRAMED_TESTS_FAULTS_DISK_H
#define FRAMED_TESTS_FAULTS_DISK_H

struct disk_fault {
    const char *folder; // calls on its files are numbered, from 1
    int first, last;    // numbers of the failing calls
    int error;          // errno of these calls
};

// Sets the fault from now on; restarts the numbers. A failing write writes half of its bytes, and
// fails when it is called for the rest. NULL repairs the disk.
void disk_break(const struct disk_fault *);
int disk_calls(void); // since disk_break

#endif
