export { stopSeveral as default } from './start-several.mjs';
