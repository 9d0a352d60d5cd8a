/** The part of pino's Logger that this room uses, so that a test can pass an object of four functions. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export type LogLevel = keyof Log;

const nothing = () => {};

/** Drops every line. */
export const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
