/** Flags of `palimpsest verify`, as commander hands them over. */
export interface VerifyFlags {
  readonly data?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}
