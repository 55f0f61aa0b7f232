//! Going over the syntax tree of a module: names, paths, and what stands inside what.

use std::collections::BTreeSet;

use regorus::unstable::{AssignOp, Expr, Literal, LiteralStmt, Module, Query, Rule, RuleBody, RuleHead};

/// One expression inside another, or a query inside an expression.
pub(crate) enum Node<'a> {
    Expr(&'a Expr),
    Stmt(&'a LiteralStmt),
}

/// Calls `see` with an expression and everything in it.
pub(crate) fn each_in_expr<'a>(expr: &'a Expr, see: &mut dyn FnMut(Node<'a>)) {
    see(Node::Expr(expr));
    match expr {
        Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. }
        | Expr::Var { .. } => {}
        Expr::Array { items, .. } | Expr::Set { items, .. } => items.iter().for_each(|item| each_in_expr(item, see)),
        Expr::Object { fields, .. } => fields.iter().for_each(|(_, key, value)| {
            each_in_expr(key, see);
            each_in_expr(value, see);
        }),
        Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
            each_in_expr(term, see);
            each_in_query(query, see);
        }
        Expr::ObjectCompr { key, value, query, .. } => {
            each_in_expr(key, see);
            each_in_expr(value, see);
            each_in_query(query, see);
        }
        Expr::Call { fcn, params, .. } => {
            each_in_expr(fcn, see);
            for param in params {
                each_in_expr(param, see);
            }
        }
        Expr::UnaryExpr { expr, .. } => each_in_expr(expr, see),
        Expr::RefDot { refr, .. } => each_in_expr(refr, see),
        Expr::RefBrack { refr, index, .. } => {
            each_in_expr(refr, see);
            each_in_expr(index, see);
        }
        Expr::BinExpr { lhs, rhs, .. }
        | Expr::BoolExpr { lhs, rhs, .. }
        | Expr::ArithExpr { lhs, rhs, .. }
        | Expr::AssignExpr { lhs, rhs, .. } => {
            each_in_expr(lhs, see);
            each_in_expr(rhs, see);
        }
        Expr::Membership { key, value, collection, .. } => {
            if let Some(key) = key {
                each_in_expr(key, see);
            }
            each_in_expr(value, see);
            each_in_expr(collection, see);
        }
    }
}

pub(crate) fn each_in_query<'a>(query: &'a Query, see: &mut dyn FnMut(Node<'a>)) {
    query.stmts.iter().for_each(|stmt| each_in_stmt(stmt, see));
}

pub(crate) fn each_in_stmt<'a>(stmt: &'a LiteralStmt, see: &mut dyn FnMut(Node<'a>)) {
    see(Node::Stmt(stmt));
    match &stmt.literal {
        Literal::SomeVars { .. } => {}
        Literal::SomeIn { key, value, collection, .. } => {
            if let Some(key) = key {
                each_in_expr(key, see);
            }
            each_in_expr(value, see);
            each_in_expr(collection, see);
        }
        Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => each_in_expr(expr, see),
        Literal::Every { domain, query, .. } => {
            each_in_expr(domain, see);
            each_in_query(query, see);
        }
    }
    for change in &stmt.with_mods {
        each_in_expr(&change.refr, see);
        each_in_expr(&change.r#as, see);
    }
}

/// What a definition of a rule consists of besides its bodies.
pub(crate) struct Head<'a> {
    /// The rule's name; what stands behind it in `name[key]` or `name.key` is left out.
    pub(crate) name: &'a str,
    pub(crate) args: Vec<&'a Expr>,
    /// The expressions of its value and key.
    pub(crate) values: Vec<&'a Expr>,
    pub(crate) is_function: bool,
}

impl<'a> Head<'a> {
    pub(crate) fn of(head: &'a RuleHead) -> Self {
        let (refr, args, is_function) = match head {
            RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } => (refr, Vec::new(), false),
            RuleHead::Func { refr, args, .. } => (refr, args.iter().map(|arg| &**arg).collect(), true),
        };
        let mut values: Vec<&Expr> = match head {
            RuleHead::Compr { assign, .. } | RuleHead::Func { assign, .. } => {
                assign.iter().map(|assign| &*assign.value).collect()
            }
            RuleHead::Set { key, .. } => key.iter().map(|key| &**key).collect(),
        };
        if !matches!(&**refr, Expr::Var { .. }) {
            values.push(refr);
        }
        Self { name: root(refr).unwrap_or_default(), args, values, is_function }
    }
}

/// The name at the beginning of a reference.
pub(crate) fn root(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Var { span, .. } => Some(span.text()),
        Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => root(refr),
        _ => None,
    }
}

/// The names of a reference as far as they are fixed: `a.b["c"][x].d` is `a.b.c`. With it, whether that is all of it.
pub(crate) fn path(expr: &Expr) -> Option<(Vec<&str>, bool)> {
    match expr {
        Expr::Var { span, .. } => Some((vec![span.text()], true)),
        Expr::RefDot { refr, field, .. } => {
            let (mut names, whole) = path(refr)?;
            if whole {
                names.push(field.0.text());
            }
            Some((names, whole))
        }
        Expr::RefBrack { refr, index, .. } => {
            let (mut names, whole) = path(refr)?;
            match &**index {
                Expr::String { value, .. } | Expr::RawString { value, .. } if whole => {
                    names.push(value.as_string().ok()?);
                    Some((names, true))
                }
                _ => Some((names, false)),
            }
        }
        _ => None,
    }
}

/// The longest references in a piece of syntax: of `a.b.c` only the whole.
pub(crate) fn references<'a>(walk: impl FnOnce(&mut dyn FnMut(Node<'a>))) -> Vec<&'a Expr> {
    let mut inner: BTreeSet<*const Expr> = BTreeSet::new();
    let mut found = Vec::new();
    walk(&mut |node| {
        let Node::Expr(expr) = node else { return };
        match expr {
            Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => {
                inner.insert(std::ptr::from_ref::<Expr>(refr));
                found.push(expr);
            }
            Expr::Var { .. } => found.push(expr),
            _ => {}
        }
    });
    found.retain(|expr| !inner.contains(&std::ptr::from_ref::<Expr>(expr)));
    found
}

/// The local names that a piece of syntax declares: `some x`, `some x in`, `x :=`, `every x in`.
pub(crate) fn declared<'a>(walk: impl FnOnce(&mut dyn FnMut(Node<'a>))) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    walk(&mut |node| match node {
        Node::Stmt(stmt) => match &stmt.literal {
            Literal::SomeVars { vars, .. } => names.extend(vars.iter().map(regorus::unstable::Span::text)),
            Literal::SomeIn { key, value, .. } => {
                if let Some(key) = key {
                    variables(key, &mut names);
                }
                variables(value, &mut names);
            }
            Literal::Every { key, value, .. } => {
                names.extend(key.iter().map(regorus::unstable::Span::text));
                names.insert(value.text());
            }
            Literal::Expr { .. } | Literal::NotExpr { .. } => {}
        },
        Node::Expr(Expr::AssignExpr { op: AssignOp::ColEq, lhs, .. }) => variables(lhs, &mut names),
        Node::Expr(_) => {}
    });
    names
}

/// The variables of a pattern: `x`, `[x, y]`, `{"a": x}`.
pub(crate) fn variables<'a>(pattern: &'a Expr, names: &mut BTreeSet<&'a str>) {
    each_in_expr(pattern, &mut |node| {
        if let Node::Expr(Expr::Var { span, .. }) = node {
            names.insert(span.text());
        }
    });
}

/// The package of a module: `a.b` of `package a.b`.
pub(crate) fn package(module: &Module) -> String {
    path(&module.package.refr).map(|(names, _)| names.join(".")).unwrap_or_default()
}

/// Every definition of a rule in a module, with its bodies.
pub(crate) fn definitions(module: &Module) -> impl Iterator<Item = (&Rule, Head<'_>, &[RuleBody])> {
    module.policy.iter().filter_map(|rule| match &**rule {
        Rule::Spec { head, bodies, .. } => Some((&**rule, Head::of(head), bodies.as_slice())),
        Rule::Default { .. } => None,
    })
}
