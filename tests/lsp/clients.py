"""What three editors say that they can: VS Code 1.9x (vscode-languageclient 9), Neovim 0.11, Emacs 30 (eglot 1.17).

As they send it in ``initialize``, but for what has nothing to do with a server of hints, hovers, lenses, diagnostics,
actions, commands, notebooks and settings.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import converters, types

_MARKDOWN_FIRST = ["markdown", "plaintext"]
_CODE_ACTION_KINDS = [
    "",
    "quickfix",
    "refactor",
    "refactor.extract",
    "refactor.inline",
    "refactor.rewrite",
    "source",
    "source.organizeImports",
]

VSCODE: dict[str, Any] = {
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "textOnlyTransactional",
            "normalizesLineEndings": True,
            "changeAnnotationSupport": {"groupsOnLabel": True},
        },
        "configuration": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "codeLens": {"refreshSupport": True},
        "executeCommand": {"dynamicRegistration": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceFolders": True,
        "fileOperations": {
            "dynamicRegistration": True,
            "didCreate": True,
            "didRename": True,
            "didDelete": True,
            "willCreate": True,
            "willRename": True,
            "willDelete": True,
        },
        "inlayHint": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "publishDiagnostics": {
            "relatedInformation": True,
            "versionSupport": False,
            "tagSupport": {"valueSet": [1, 2]},
            "codeDescriptionSupport": True,
            "dataSupport": True,
        },
        "synchronization": {
            "dynamicRegistration": True,
            "willSave": True,
            "willSaveWaitUntil": True,
            "didSave": True,
        },
        "hover": {"dynamicRegistration": True, "contentFormat": _MARKDOWN_FIRST},
        "codeAction": {
            "dynamicRegistration": True,
            "isPreferredSupport": True,
            "disabledSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": _CODE_ACTION_KINDS}},
            "honorsChangeAnnotations": True,
        },
        "codeLens": {"dynamicRegistration": True},
        "inlayHint": {
            "dynamicRegistration": True,
            "resolveSupport": {
                "properties": ["tooltip", "textEdits", "label.tooltip", "label.location", "label.command"]
            },
        },
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    },
    "window": {
        "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        "showDocument": {"support": True},
        "workDoneProgress": True,
    },
    "general": {
        "staleRequestSupport": {
            "cancel": True,
            "retryOnContentModified": [
                "textDocument/semanticTokens/full",
                "textDocument/semanticTokens/range",
                "textDocument/semanticTokens/full/delta",
            ],
        },
        "regularExpressions": {"engine": "ECMAScript", "version": "ES2020"},
        "markdown": {"parser": "marked", "version": "1.1.0"},
        "positionEncodings": ["utf-16"],
    },
    "notebookDocument": {"synchronization": {"dynamicRegistration": True, "executionSummarySupport": True}},
}

NEOVIM: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "workspaceFolders": True,
        "workspaceEdit": {"resourceOperations": ["rename", "create", "delete"]},
        "didChangeConfiguration": {"dynamicRegistration": False},
        # False on Linux, where Neovim watches no files by itself.
        "didChangeWatchedFiles": {"dynamicRegistration": False, "relativePatternSupport": True},
        "inlayHint": {"refreshSupport": True},
        "semanticTokens": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {
            "dynamicRegistration": False,
            "willSave": True,
            "willSaveWaitUntil": True,
            "didSave": True,
        },
        "hover": {"dynamicRegistration": True, "contentFormat": _MARKDOWN_FIRST},
        "codeAction": {
            "dynamicRegistration": True,
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": _CODE_ACTION_KINDS}},
        },
        "codeLens": {"dynamicRegistration": False, "resolveSupport": {"properties": ["command"]}},
        "inlayHint": {
            "dynamicRegistration": True,
            "resolveSupport": {"properties": ["textEdits", "tooltip", "location", "command"]},
        },
        "diagnostic": {"dynamicRegistration": False},
        "publishDiagnostics": {
            "relatedInformation": True,
            "tagSupport": {"valueSet": [1, 2]},
            "dataSupport": True,
        },
    },
    "window": {
        "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        "showDocument": {"support": True},
        "workDoneProgress": True,
    },
}

# Without a package that shows Markdown, as eglot comes.
EMACS: dict[str, Any] = {
    "workspace": {
        "applyEdit": True,
        "executeCommand": {"dynamicRegistration": False},
        "workspaceEdit": {"documentChanges": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "symbol": {"dynamicRegistration": False},
        "configuration": True,
        "workspaceFolders": True,
    },
    "textDocument": {
        "synchronization": {
            "dynamicRegistration": False,
            "willSave": True,
            "willSaveWaitUntil": True,
            "didSave": True,
        },
        "hover": {"dynamicRegistration": False, "contentFormat": ["plaintext"]},
        "codeAction": {
            "dynamicRegistration": False,
            "resolveSupport": {"properties": ["edit", "command"]},
            "dataSupport": True,
            "codeActionLiteralSupport": {
                "codeActionKind": {
                    "valueSet": [
                        "quickfix",
                        "refactor",
                        "refactor.extract",
                        "refactor.inline",
                        "refactor.rewrite",
                        "source",
                        "source.organizeImports",
                    ]
                }
            },
            "isPreferredSupport": True,
        },
        "inlayHint": {"dynamicRegistration": False},
        "publishDiagnostics": {
            "relatedInformation": False,
            "codeDescriptionSupport": False,
            "tagSupport": {"valueSet": [1, 2]},
        },
    },
    "window": {"showDocument": {"support": True}, "workDoneProgress": True},
    "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
    "experimental": {},
}

CLIENTS = {"vscode": VSCODE, "neovim": NEOVIM, "emacs": EMACS}


def capabilities(client: str) -> types.ClientCapabilities:
    """The capabilities that a client sends."""
    return converters.get_converter().structure(CLIENTS[client], types.ClientCapabilities)
