// Commands with their own options.
#ifndef FRAMED_DAEMON_CLI_COMMANDS_H
#define FRAMED_DAEMON_CLI_COMMANDS_H

#define DEFAULT_CONFIG "/etc/framed/framed.yaml"

// Each takes the arguments from the command's name on and returns an enum exit_code.
int status_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int probe_main(int argc, char **argv);
int discover_main(int argc, char **argv);
int pause_main(int argc, char **argv);
int resume_main(int argc, char **argv);
int record_main(int argc, char **argv);
int snap_main(int argc, char **argv);
int verify_main(int argc, char **argv);
int cluster_main(int argc, char **argv);
int support_main(int argc, char **argv);

#endif
