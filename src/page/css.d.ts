/** Style sheets that an entry imports; the bundler writes them to a file. */
declare module '*.css';
