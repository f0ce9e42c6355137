/** Declares the style sheets that an entry point imports. The bundler writes them to a file. */
declare module '*.css';
