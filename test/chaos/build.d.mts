/** Builds programs of the chaos test into `folder`, which lies inside the project so that they find its files, and gives their paths. */
export function buildPrograms(folder: string, names: readonly string[]): Promise<readonly string[]>;
