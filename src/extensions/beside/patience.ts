/** Thrown when work took longer than a harness waits for it. */
export class LateError extends Error {
  override readonly name = 'LateError';
}

/** What work comes to; rejects with LateError after the limit. Keeps the process alive meanwhile: a harness waits for the answer. */
export async function patiently<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LateError(`no answer within ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
