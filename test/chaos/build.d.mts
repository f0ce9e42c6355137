/** Builds programs of the chaos test into `folder` and returns their paths. The folder is inside the project, so that they find its files. */
export function buildPrograms(folder: string, names: readonly string[]): Promise<readonly string[]>;
