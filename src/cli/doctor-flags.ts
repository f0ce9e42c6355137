/** Flags of `palimpsest doctor`, as commander hands them over. */
export interface DoctorFlags {
  readonly data?: string;
  readonly profile?: string;
  readonly json?: boolean;
}
