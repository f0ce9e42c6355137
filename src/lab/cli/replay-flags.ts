/** Flags of `palimpsest replay`. */
export interface ReplayFlags {
  readonly into?: string;
  readonly config?: string;
  readonly out?: string;
  readonly dataDir?: string;
  readonly jobs?: number;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}
