/** Styles that an entry imports for their effect: the bundler makes a file of them. */
declare module '*.css';
