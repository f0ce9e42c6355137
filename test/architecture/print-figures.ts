import { figureLines, figuresOf } from './figures.js';
import { sourceFiles } from './source-tree.js';

for (const line of figureLines(figuresOf(sourceFiles('src')))) console.log(line);
