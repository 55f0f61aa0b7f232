use crate::sql::statements;

statements! {
    SUBJECT_GET on subjects {
        both: "SELECT run_id FROM subjects WHERE tenant_id = $1 AND subject = $2"
    }

    /// Key of subject_queue, in its order.
    SUBJECT_QUEUED on subject_queue {
        both: "SELECT run_id, cancels FROM subject_queue WHERE tenant_id = $1 AND subject = $2 ORDER BY run_id LIMIT $3"
    }

    /// Subjects with waiting runs that no run holds, or whose holder is to be canceled for a waiting run. The queue is
    /// short: it holds runs that wait now.
    SUBJECTS_UNTENDED on subject_queue {
        both: "SELECT DISTINCT q.tenant_id, q.subject FROM subject_queue q
               LEFT JOIN subjects s ON s.tenant_id = q.tenant_id AND s.subject = q.subject
               WHERE s.run_id IS NULL OR q.cancels = 1 LIMIT $1"
    }

    /// On PostgreSQL a transaction that frees the subject waits for this one.
    SUBJECT_LOCK on subjects {
        sqlite: "SELECT run_id FROM subjects WHERE tenant_id = ?1 AND subject = ?2",
        postgres: "SELECT run_id FROM subjects WHERE tenant_id = $1 AND subject = $2 FOR UPDATE"
    }
}
