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
      /** Sets the value at a path. Creates missing tables on the path. */
      readonly kind: 'entry';
      readonly path: readonly string[];
      readonly value: SettingValue;
      /**
       * The key under which a plain text is kept, if the file has that text instead of a table on
       * this path. OpenCode accepts `"permission": "allow"` for `"permission": {"*": "allow"}`.
       */
      readonly plainKey?: string;
    }
  | {
      /** Adds values to the list at a path, unless the list has them. */
      readonly kind: 'members';
      readonly path: readonly string[];
      readonly values: readonly SettingValue[];
    };

/** A change that was made, with all data to undo it. */
export type Made =
  | {
      readonly kind: 'entry';
      readonly path: readonly string[];
      readonly value: SettingValue;
      /** The former value as written in the file. Absent if there was none. */
      readonly before?: string | undefined;
      /** Number of tables on the path that this change created. */
      readonly created: number;
    }
  | {
      readonly kind: 'members';
      readonly path: readonly string[];
      readonly values: readonly SettingValue[];
      readonly created: number;
    }
  | {
      /** Replaced a plain text by a table. */
      readonly kind: 'widened';
      readonly path: readonly string[];
      readonly key: string;
      readonly before: string;
    };

/** A text after changes. */
export interface Changed {
  readonly text: string;
  /** The changes in the order in which they were made. Empty if the text already had them all. */
  readonly made: readonly Made[];
}

/** A text after our changes were undone. */
export interface TakenBack {
  readonly text: string;
  /** Paths of entries that stay, because they were changed after the setup. */
  readonly left: readonly string[];
  /** True if the text is empty apart from an empty table. */
  readonly isEmpty: boolean;
}

/** Returns whether a value in a settings file is still the entry that a setup wrote. */
export function isStillOurs(found: unknown, ours: SettingValue): boolean {
  if (typeof ours !== 'object') return found === ours;
  if (typeof found !== 'object' || found === null) return false;
  const [one, other] = [found as Readonly<Record<string, unknown>>, ours as Readonly<Record<string, unknown>>];
  // Only these two fields are compared: agents add other fields, such as the tools that a user
  // allowed.
  return ['command', 'args'].every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}
