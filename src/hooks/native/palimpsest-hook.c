/*
 * Sends one hook event of an agent to `palimpsest watch` and prints the answer.
 *
 *   palimpsest-hook AGENT DATA [MILLISECONDS]
 *
 * It reads the event from standard input, sends it to DATA/watch.sock, and prints the whole answer
 * or nothing. It always exits with 0 and prints no errors, because a hook must never stop an agent.
 * After MILLISECONDS it gives up. If nothing listens, it starts the command in DATA/hooks/start. A
 * failure leaves a line in DATA/hooks/unreached for `palimpsest doctor`.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST_INPUT (16u * 1024u * 1024u)
#define MOST_ANSWER (256u * 1024u)
#define DEFAULT_MS 200
#define LONGEST_MS 10000
/* Minimum seconds between two starts of the watcher, which takes a while until it listens. */
#define START_AGAIN 20
#define MOST_WORDS 16

static const char *failure = "late";

/* Writes the reason into hooks/unreached and exits. Calls only async-signal-safe functions. */
static void give_up(void) {
  if (failure != NULL) {
    /* Only a setup creates the folder. So a removed data folder stays removed. */
    int mark = open("hooks/unreached", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (mark >= 0) {
      size_t length = strlen(failure);
      if (write(mark, failure, length) == (ssize_t)length && write(mark, "\n", 1) < 0) { /* no remedy */ }
      close(mark);
    }
  }
  _exit(0);
}

static void on_alarm(int signal_number) {
  (void)signal_number;
  give_up();
}

static void set_deadline(long ms) {
  struct sigaction action;
  struct itimerval timer;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  memset(&timer, 0, sizeof timer);
  timer.it_value.tv_sec = ms / 1000;
  timer.it_value.tv_usec = (ms % 1000) * 1000;
  setitimer(ITIMER_REAL, &timer, NULL);
}

/* Reads to the end. Returns 0 if there are more than `most` bytes; the rest is read and dropped. */
static int read_all(int from, size_t most, char **bytes, size_t *length) {
  size_t room = 65536;
  char *kept = malloc(room);
  size_t size = 0;
  if (kept == NULL) return 0;
  for (;;) {
    ssize_t got = read(from, kept + size, room - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return 0;
    if (got == 0) break;
    size += (size_t)got;
    if (size > most) {
      while ((got = read(from, kept, room)) > 0 || (got < 0 && errno == EINTR)) continue;
      return 0;
    }
    if (size == room) {
      char *wider = realloc(kept, room * 2);
      if (wider == NULL) return 0;
      kept = wider;
      room *= 2;
    }
  }
  *bytes = kept;
  *length = size;
  return 1;
}

static int write_all(int to, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t put = write(to, bytes, length);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return 0;
    bytes += put;
    length -= (size_t)put;
  }
  return 1;
}

/* Connects to watch.sock in the working folder, so that no path is too long for a socket. */
static int connected(void) {
  struct sockaddr_un address;
  int line = socket(AF_UNIX, SOCK_STREAM, 0);
  if (line < 0) return -1;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "watch.sock");
  if (connect(line, (struct sockaddr *)&address, sizeof address) == 0) return line;
  close(line);
  return -1;
}

/* Returns whether this process has to start the watcher now. */
static int is_starter(void) {
  const char *name = "hooks/starting";
  struct stat found;
  int made = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) {
    close(made);
    return 1;
  }
  if (stat(name, &found) != 0 || time(NULL) - found.st_mtime < START_AGAIN) return 0;
  /* Of several processes, the one that removes the old file continues. */
  if (unlink(name) != 0) return 0;
  made = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) return 0;
  close(made);
  return 1;
}

/* Starts the command of hooks/start, one word a line, in a process that outlives this one. */
static void start_watcher(void) {
  char *words[MOST_WORDS + 1];
  char *text = NULL;
  size_t length = 0;
  int count = 0;
  int file = open("hooks/start", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  if (!read_all(file, 16384, &text, &length) || length == 0 || !is_starter()) {
    close(file);
    return;
  }
  close(file);
  if (fork() != 0) return;
  if (fork() != 0) _exit(0);
  setsid();
  {
    char *at = text;
    char *end = text + length;
    while (at < end && count < MOST_WORDS) {
      char *stop = memchr(at, '\n', (size_t)(end - at));
      if (stop == NULL) break;
      *stop = '\0';
      words[count++] = at;
      at = stop + 1;
    }
    words[count] = NULL;
  }
  {
    int nothing = open("/dev/null", O_RDWR);
    int one;
    if (nothing >= 0)
      for (one = 0; one <= 2; one++) dup2(nothing, one);
    for (one = 3; one < 256; one++) close(one);
  }
  signal(SIGALRM, SIG_DFL);
  if (count > 0) execvp(words[0], words);
  _exit(0);
}

int main(int count, char **args) {
  char *event = NULL;
  char *answer = NULL;
  size_t length = 0;
  size_t answered = 0;
  long ms = DEFAULT_MS;
  int line;

  if (count < 3 || chdir(args[2]) != 0) return 0;
  if (count > 3) ms = strtol(args[3], NULL, 10);
  if (ms < 1 || ms > LONGEST_MS) ms = DEFAULT_MS;
  signal(SIGPIPE, SIG_IGN);
  set_deadline(ms);

  line = connected();
  if (line < 0) {
    failure = "nothing listens on watch.sock";
    start_watcher();
  }
  /* An agent may fail if its hook leaves input unread. */
  if (!read_all(0, MOST_INPUT, &event, &length)) {
    failure = "the event is too large";
    give_up();
  }
  if (line < 0) give_up();

  failure = "late";
  if (!write_all(line, "palimpsest-hook 1 ", 18) || !write_all(line, args[1], strlen(args[1])) ||
      !write_all(line, "\n", 1) || !write_all(line, event, length) || shutdown(line, SHUT_WR) != 0 ||
      !read_all(line, MOST_ANSWER, &answer, &answered)) {
    failure = "watch.sock broke off";
    give_up();
  }
  /* From here on, a delay comes from the agent. */
  failure = NULL;
  write_all(1, answer, answered);
  return 0;
}
