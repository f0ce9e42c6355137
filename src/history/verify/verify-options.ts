/** How far a verification is. */
export interface VerifyProgress {
  readonly what: 'contexts' | 'answers' | 'parts';
  readonly done: number;
  readonly total: number;
}

/** How a session is verified. */
export interface VerifyOptions {
  readonly onProgress?: (progress: VerifyProgress) => void;
  readonly signal?: AbortSignal;
}
