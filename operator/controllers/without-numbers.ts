/** A message with a port or a time in it is new at every try: each would be written, and each write is a reason to try again at once. */
export const withoutNumbers = (text: string): string => text.replace(/[0-9]+/g, '#');
