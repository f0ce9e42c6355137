import { sha256 as withoutBrowser } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';

/**
 * Hashes bytes with SHA-256. Uses the browser's implementation if there is one. Pages from another
 * host over plain HTTP have none.
 */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const subtle = globalThis.crypto?.subtle;
  return bytesToHex(
    subtle === undefined ? withoutBrowser(bytes) : new Uint8Array(await subtle.digest('SHA-256', bytes)),
  );
}
