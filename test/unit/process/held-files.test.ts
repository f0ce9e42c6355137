import { describe, expect, test } from '@jest/globals';
import { whenReleased } from '../../../src/process/held-files.js';

const failure = (code: string): Error => Object.assign(new Error(code), { code, syscall: 'rename' });

/** Returns a change that fails this many times, and the number of its calls. */
function heldFor(
  times: number,
  code = 'EPERM',
): { readonly change: () => Promise<string>; readonly calls: () => number } {
  let calls = 0;
  const change = async (): Promise<string> => {
    calls += 1;
    if (calls <= times) throw failure(code);
    return 'changed';
  };
  return { change, calls: () => calls };
}

describe('a change of a name that another process holds open', () => {
  test.each(['EPERM', 'EACCES', 'EBUSY'])('is made once the file is closed, after %s', async (code) => {
    const held = heldFor(3, code);
    expect(await whenReleased(held.change, { holdsOpenFiles: true })).toBe('changed');
    expect(held.calls()).toBe(4);
  });

  test('fails with the error of the system if the file stays open', async () => {
    const held = heldFor(Number.POSITIVE_INFINITY, 'EBUSY');
    await expect(whenReleased(held.change, { holdsOpenFiles: true })).rejects.toMatchObject({ code: 'EBUSY' });
    expect(held.calls()).toBeGreaterThan(2);
  });

  test.each([
    ['another error', 'ENOENT', true],
    ['a system that keeps no name for open files', 'EPERM', false],
  ])('is tried once with %s', async (_name, code, holdsOpenFiles) => {
    const held = heldFor(1, code);
    await expect(whenReleased(held.change, { holdsOpenFiles })).rejects.toMatchObject({ code });
    expect(held.calls()).toBe(1);
  });
});
