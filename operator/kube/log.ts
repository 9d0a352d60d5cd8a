/** The part of pino's Logger that this layer uses, so that a test can pass an object of four functions. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** How much a line matters. */
export type Level = keyof Log;

const nothing = () => {};

/** Drops every line. */
export const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
