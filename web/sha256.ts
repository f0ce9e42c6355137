import { sha256 as withoutBrowser } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';

/** SHA-256 of bytes, by the browser where it has one: a page that came over plain HTTP from elsewhere is given none. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const subtle = globalThis.crypto?.subtle;
  return bytesToHex(
    subtle === undefined ? withoutBrowser(bytes) : new Uint8Array(await subtle.digest('SHA-256', bytes)),
  );
}
