// `framed tune`: finds the settings that are fast on this box by trying them.
#ifndef FRAMED_DAEMON_TUNE_TUNE_H
#define FRAMED_DAEMON_TUNE_TUNE_H

// The command with its own arguments; returns an enum exit_code.
int tune_main(int argc, char **argv);

#endif
