/** A value in a settings file. */
export type SettingValue =
  | string
  | number
  | boolean
  | readonly SettingValue[]
  | { readonly [name: string]: SettingValue };

/** One change that a setup makes in a settings file. */
export type Change =
  | {
      /** Sets the value at a path. Missing tables on the way are created. */
      readonly kind: 'entry';
      readonly path: readonly string[];
      readonly value: SettingValue;
      /**
       * The key of a plain text in place of this entry's table. OpenCode accepts
       * `"permission": "allow"` for `"permission": {"*": "allow"}`.
       */
      readonly plainKey?: string;
    }
  | {
      /** Adds values to the list at a path, unless they are in it. */
      readonly kind: 'members';
      readonly path: readonly string[];
      readonly values: readonly SettingValue[];
    };

/** A change that was made, with all that is needed to take it back. */
export type Made =
  | {
      readonly kind: 'entry';
      readonly path: readonly string[];
      readonly value: SettingValue;
      /** The former value as the file spelled it; absent if there was none. */
      readonly before?: string | undefined;
      /** Number of tables on the way that this change created. */
      readonly created: number;
    }
  | {
      readonly kind: 'members';
      readonly path: readonly string[];
      readonly values: readonly SettingValue[];
      readonly created: number;
    }
  | {
      /** A plain text became a table. */
      readonly kind: 'widened';
      readonly path: readonly string[];
      readonly key: string;
      readonly before: string;
    };

/** A text with changes. */
export interface Changed {
  readonly text: string;
  /** In the order in which they were made; empty if the text already says all of it. */
  readonly made: readonly Made[];
}

/** A text without our changes. */
export interface TakenBack {
  readonly text: string;
  /** Paths that stay because someone gave them another meaning. */
  readonly left: readonly string[];
  /** Whether nothing but an empty table remains. */
  readonly isEmpty: boolean;
}

/** Returns whether a value in a settings file still is the entry that a setup put there. */
export function isStillOurs(found: unknown, ours: SettingValue): boolean {
  if (typeof ours !== 'object') return found === ours;
  if (typeof found !== 'object' || found === null) return false;
  const [one, other] = [found as Readonly<Record<string, unknown>>, ours as Readonly<Record<string, unknown>>];
  // Agents add fields of their own, such as the tools that a user allowed.
  return ['command', 'args'].every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}
