import type { OnLoss } from '../importer.js';

/** Counts content that a recording has and nobody can read: encrypted thoughts, pictures. One loss for each kind, at the end. */
export interface OpaqueContent {
  note(kind: string, place: string): void;
  /** Tells what was noted. */
  finish(onLoss: OnLoss): void;
}

/** An empty count. */
export function createOpaqueContent(): OpaqueContent {
  const kinds = new Map<string, { readonly place: string; count: number }>();
  return {
    note(kind, place) {
      const known = kinds.get(kind);
      if (known === undefined) kinds.set(kind, { place, count: 1 });
      else known.count += 1;
    },
    finish(onLoss) {
      for (const [kind, { place, count }] of kinds) {
        onLoss({ reason: 'opaque-content', place, detail: `${kind}: ${count} of them, the first here` });
      }
    },
  };
}
