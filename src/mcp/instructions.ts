/**
 * What a client tells its model about this server. Some show only the first 512 characters, none more than 2,048: the essentials come first.
 */
export const INSTRUCTIONS = `Palimpsest keeps your working context: every file you read and every tool result becomes an object with an id, a version history and a place in your session. Use these tools for files instead of the shell. read opens a file (continue with offset) or any object by id, so old tool output never has to be produced again. activate, deactivate, pin and unpin steer what stays loaded; context shows what you have. Errors begin with "Error:" and say what to call next.

Objects are named by full id, by a unique prefix of 8 or more characters, or by path. Listing tools (ls, find, grep, tree) make files known without reading them. Results of tools collapse on their own as you go on: the newest five of each of the last three turns stay, unless pinned. Files you read whole stay active until you deactivate them; deactivate what you no longer need. Nothing is ever lost: what is inactive can be activated or read again, and older versions of a file with read id=... version=....

edit needs text that stands exactly once in the file; several edits in one call are applied together or not at all. Long answers are cut at a line end and say how to continue.`;
