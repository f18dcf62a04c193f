import { render } from "preact";
import { App } from "./app";
import "./style.css";
import { applyTheme } from "./theme";
import { showHidden } from "./visible";

applyTheme();
showHidden();
render(<App />, document.getElementById("app")!);
