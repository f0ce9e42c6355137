/** Returns a promise and the function that resolves it. */
export function moment(): readonly [Promise<void>, () => void] {
  let come = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    come = resolve;
  });
  return [promise, come];
}
