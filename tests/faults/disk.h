// A disk that fails to order, for programs that are linked with disk.c: it stands before the C
// library's calls on files. Thread-safe, but for disk_break itself.
//
// A framed that is linked with it takes its orders from outside: while the file FRAMED_DISK_FULL
// names is there, no other file in its folder grows and none is made.
#ifndef FRAMED_TESTS_FAULTS_DISK_H
#define FRAMED_TESTS_FAULTS_DISK_H

struct disk_fault {
    const char *folder; // calls on what is in it are numbered, from 1
    int first, last;    // of the calls that fail
    int error;          // errno of theirs
};

// From now on; numbers begin anew. A write that is to fail writes half of its bytes, and fails when
// it is called for the rest. NULL mends the disk.
void disk_break(const struct disk_fault *);
int disk_calls(void); // since disk_break

#endif
