/** Flags of the `node` commands, as commander hands them over. */
export interface NodeFlags {
  readonly data?: string;
  readonly profile?: string;
  readonly json?: boolean;
  readonly idleExit?: number;
  readonly readyTimeout?: number;
  readonly heap?: number;
  readonly tcp?: boolean;
  readonly lines?: number;
}
