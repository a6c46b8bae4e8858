/** The version of this package, which a bundle of it cannot look up in its package.json. */
export const VERSION = "0.1.0";
