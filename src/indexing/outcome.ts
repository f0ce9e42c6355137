/** What indexing did to an object [§5.6]. */
export type IndexOutcome = 'created' | 'updated' | 'unchanged';
