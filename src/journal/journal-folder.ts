import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../process/system-code.js';
import { journalFailure } from './errors.js';

/** The folder of the journals in a data folder. */
export const journalFolder = (dataDir: string): string => join(dataDir, 'journal');

/** One file of a journal. */
export interface SegmentName {
  readonly owner: string;
  readonly segment: number;
  readonly file: string;
}

/** One generation of a journal's lock. */
export interface LockName {
  readonly owner: string;
  readonly generation: number;
  readonly file: string;
}

/** What is in a journal folder. */
export interface FolderListing {
  /** By owner, then in the order they were written. */
  readonly segments: readonly SegmentName[];
  /** By owner, oldest generation first. */
  readonly locks: readonly LockName[];
}

const SEGMENT = /^(\d{6,15}-[0-9a-f]{8})-(\d{1,15})\.wal$/;
const LOCK = /^(\d{6,15}-[0-9a-f]{8})\.(\d{1,15})\.lock$/;

/** The file name of a segment of an owner's journal. */
export const segmentFile = (owner: string, segment: number): string => `${owner}-${segment}.wal`;
/** The file name of one generation of the lock of an owner's journal. */
export const lockFile = (owner: string, generation: number): string => `${owner}.${generation}.lock`;

/** Journals that are there at the same time are drained in the order they were begun, which is that of their owners' numbers. */
function compareOwners(a: string, b: string): number {
  return Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : Number(a > b));
}

/** Lists a journal folder; one that does not exist is empty. */
export async function listJournalFolder(folder: string): Promise<FolderListing> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw journalFailure('listing', folder, error);
  });
  const segments: SegmentName[] = [];
  const locks: LockName[] = [];
  for (const file of names) {
    const [, owner, segment] = SEGMENT.exec(file) ?? [];
    if (owner !== undefined) segments.push({ owner, segment: Number(segment), file });
    const [, holder, generation] = LOCK.exec(file) ?? [];
    if (holder !== undefined) locks.push({ owner: holder, generation: Number(generation), file });
  }
  segments.sort((a, b) => compareOwners(a.owner, b.owner) || a.segment - b.segment);
  locks.sort((a, b) => compareOwners(a.owner, b.owner) || a.generation - b.generation);
  return { segments, locks };
}

/** The owners in a listing, oldest first. */
export function ownersIn({ segments, locks }: FolderListing): readonly string[] {
  return [...new Set([...segments, ...locks].map(({ owner }) => owner))].sort(compareOwners);
}

/** A name for a new journal: later than all that are there, and never used again. */
export function newOwner(listing: FolderListing): string {
  const newest = Math.max(0, ...ownersIn(listing).map((owner) => Number.parseInt(owner, 10)));
  return `${String(newest + 1).padStart(6, '0')}-${randomBytes(4).toString('hex')}`;
}

/** Makes the journal folder, for the user alone. */
export async function makeJournalFolder(dataDir: string): Promise<string> {
  const folder = journalFolder(dataDir);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  } catch (error) {
    throw journalFailure('making the journal folder', folder, error);
  }
  return folder;
}

/** Makes the names in a folder outlive a loss of power. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
