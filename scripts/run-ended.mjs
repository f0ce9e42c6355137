/**
 * Resolves once a child process has ended. The result says whether it passed. It has the output if
 * that was piped.
 */
export function runEnded(child) {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ passed: code === 0, output }));
  });
}
