/** What a key may not do cannot be begun, and says why. */

import type { ComponentChildren } from "preact";
import { type Scope, whyNot } from "../api/me";

/** Buttons that need a scope. Without it they are there, and disabled. */
export function May({ scope, children }: { scope: Scope; children: ComponentChildren }) {
  const why = whyNot(scope);
  if (!why) return <>{children}</>;
  return (
    <fieldset class="may-not" disabled title={why}>
      <legend class="hidden">{why}</legend>
      {children}
    </fieldset>
  );
}
