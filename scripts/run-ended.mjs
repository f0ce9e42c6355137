/** Resolves to whether a process that was started passed, and to all that it printed where that is not shown at once. */
export function runEnded(child) {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ passed: code === 0, output }));
  });
}
