/** How often the progress of a resume is told; one that is done before is not worth a line. */
const EVERY_MS = 500;

/**
 * Makes sentences, now and then, of how many of a resumed session's sources have been looked at [§3.6]: for the log and for a client that waits. The
 * last one is told only after others.
 */
export function resumeProgress(
  session: string,
  tell: (message: string) => void,
  clock: () => number = () => performance.now(),
): (done: number, total: number) => void {
  let last = clock();
  let begun = false;
  return (done, total) => {
    if (done < total ? clock() - last < EVERY_MS : !begun) return;
    begun = true;
    last = clock();
    tell(`session ${session} is resumed: ${done} of ${total} files were looked at`);
  };
}
